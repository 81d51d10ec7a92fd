"""The examples of docs/command_line.md and docs/commands.md print what the pages say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = "".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in ("command_line", "commands"))
CAPTURE = ROOT / "examples" / "sample_capture.parquet"
IN_A_SHORT_RUN = 2
"""Number of examples in a short run; each starts an interpreter or more."""

(MAKES_CAPTURE,) = re.findall(r'^    python (-c) "(.*)"$', PAGES, re.MULTILINE)
"""The command of the pages that makes capture.bin."""

EXAMPLES = re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)+)", PAGES, re.MULTILINE)


def test_the_examples_are_found() -> None:
    assert len(EXAMPLES) == PAGES.count("\n$ ") == 13


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the pages' command makes."""
    folder = tmp_path_factory.mktemp("capture")
    (folder / CAPTURE.name).symlink_to(CAPTURE)
    subprocess.run([sys.executable, *MAKES_CAPTURE], cwd=folder, check=True)
    return folder / "capture.bin"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the examples are for a POSIX shell")
@pytest.mark.parametrize(
    ("command", "printed"),
    [
        pytest.param(*example, id=example[0], marks=[pytest.mark.slow] if number >= IN_A_SHORT_RUN else [])
        for number, example in enumerate(EXAMPLES)
    ],
)
def test_example(command: str, printed: str, capture: Path, tmp_path: Path) -> None:
    for path in (CAPTURE, capture):
        (tmp_path / path.name).symlink_to(path)
    script = f'wireformat() {{ "{sys.executable}" -m wireformat.cli "$@"; }}\n{command}'
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert done.stdout + done.stderr == printed
