"""The pages of the site: those in docs/, and files of the repository that become pages."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

ELSEWHERE = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples/tour.ipynb": "tour.ipynb",
}
"""Files outside of docs/ that are pages, and what they are called there."""

LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
"""The target of a Markdown link to a file: path and anchor."""


def copy_pages(target: Path) -> None:
    """Copies all pages to a folder. What did not change keeps its time, and what is gone is removed."""
    wanted = dict(_files())
    for name, path in wanted.items():
        copied = target / name
        content = _as_page(path) if path.suffix in (".md", ".ipynb") else path.read_bytes()
        if not copied.exists() or copied.read_bytes() != content:
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(content)
    for path in [*target.rglob("*")]:
        if path.is_file() and path.relative_to(target).as_posix() not in wanted:
            path.unlink()


def _files() -> Iterator[tuple[str, Path]]:
    """Yields name on the site and path of every file that the site is made of."""
    for path in sorted(DOCS.rglob("*")):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            yield path.relative_to(DOCS).as_posix(), path
    for source, name in ELSEWHERE.items():
        yield name, ROOT / source


def _as_page(path: Path) -> bytes:
    """The text of a page, with links to other pages as they are called on the site."""
    here = site_name(path)

    def renamed(found: re.Match[str]) -> str:
        target = site_name(path.parent / found[1])
        return os.path.relpath(target, Path(here).parent).replace(os.sep, "/") + (found[2] or "")

    return LINK.sub(renamed, path.read_text(encoding="utf-8")).encode()


def site_name(path: Path) -> str:
    """What a file of the repository is called on the site; raises ValueError if it is not there."""
    inner = Path(os.path.normpath(path)).relative_to(ROOT).as_posix()
    if inner in ELSEWHERE:
        return ELSEWHERE[inner]
    return Path(inner).relative_to("docs").as_posix()


def remove(folder: Path) -> None:
    """Removes a folder, if it is there."""
    shutil.rmtree(folder, ignore_errors=True)
