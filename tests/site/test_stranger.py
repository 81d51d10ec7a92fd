"""A stranger's walk: a clean environment, the wheel, and the pages for beginners pasted line by line."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from ..wheels import ROOT, build_wheel, install, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the pages show a POSIX shell"),
]

BLOCK = re.compile(r"```(python|console)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, and the packages of this one."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("stranger")
    return install(build_wheel(folder), folder / "environment", dependencies=True)


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [block for found, block in BLOCK.findall(text) if found == language]


def check_commands(page: str, folder: Path, python: Path) -> None:
    """Each command of a page prints what the page says."""
    examples = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks(page, "console")), re.MULTILINE)
    assert examples
    for command, printed in examples:
        done = run(folder, "sh", "-c", f'PATH="{python.parent}:$PATH"; {command}')
        assert done.stdout + done.stderr == printed, command


def test_install(python: Path, tmp_path: Path) -> None:
    check_commands("install.md", tmp_path, python)


def test_quickstart(python: Path, tmp_path: Path) -> None:
    """Python at its prompt, in one session; then the shell, in the same folder."""
    found = blocks("quickstart.md", "python")
    pasted = "\n".join(f"{block}\n" for block in found)
    session = run(tmp_path, python, "-i", "-q", given=pasted)
    assert re.findall(r"Traceback|Error", session.stderr) == [], session.stderr
    expected = [line[2:] for block in found for line in block.splitlines() if line.startswith("# ")]
    assert session.stdout.splitlines() == expected
    check_commands("quickstart.md", tmp_path, python)


def test_inspector(python: Path, tmp_path: Path) -> None:
    """A message of the sample in the terminal, and a page of it that needs no network."""
    shutil.copy(ROOT / "examples" / "sample_capture.parquet", tmp_path)
    command = python.parent / "wireformat"
    shown = run(tmp_path, command, "inspect", "--record", "1", "sample_capture.parquet")
    assert shown.returncode == 0
    assert re.search(r"58 +X +tag +'X'", shown.stdout), shown.stdout
    made = run(tmp_path, command, "inspect", "--html", "page.html", "--records", "0-9", "sample_capture.parquet")
    assert (made.returncode, made.stdout) == (0, "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "51,934 records" in page
    assert "default-src &#x27;none&#x27;" in page
