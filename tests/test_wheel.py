"""The wheel in clean environments: the command says what is missing, and a stranger's walk through the first pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from .test_documentation import BLOCK, ROOT, SAMPLE
from .wheels import OWN, build_wheel, install, run

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (wireformat .*)$", README, re.MULTILINE)
SQL = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the pages show a POSIX shell"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, and the packages of this one."""
    return install(wheel, tmp_path_factory.mktemp("stranger") / "environment", dependencies=True)


def test_without_its_dependencies(wheel: Path, tmp_path: Path) -> None:
    python = install(wheel, tmp_path / "environment")
    done = run(tmp_path, python.with_name("wireformat"), "--help")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        r"wireformat: the command needs the extra cli: pip install 'wireformat\[cli\]' .*\n", done.stderr
    )
    done = run(tmp_path, python, "-c", "import wireformat, spark_udfs")
    assert "spark_udfs needs the extra spark: pip install 'wireformat[spark]'" in done.stderr.splitlines()[-1]


@pytest.mark.spark
def test_examples_of_the_readme(python: Path, tmp_path: Path) -> None:
    """From an empty folder: the Python ones, then those for the shell."""
    (site,) = python.parents[1].rglob("site-packages")
    folder = tmp_path / "empty"
    (folder / "examples").mkdir(parents=True)
    shutil.copy(ROOT / SAMPLE, folder / SAMPLE)
    for package in ("wireformat", "spark_udfs"):
        found = run(folder, python, "-c", f"import {package}; print({package}.__file__)")
        assert Path(found.stdout.strip()).is_relative_to(site), found.stderr
    program = tmp_path / "readme.py"
    statements = [f"print(spark.sql({statement!r}).count())" for statement in SQL]
    program.write_text("\n".join([*BLOCK.findall(README), *statements]), encoding="utf-8")
    done = run(folder, python, program)
    assert done.returncode == 0, done.stderr
    *shown, records = done.stdout.splitlines()
    assert "orders" in shown[0]
    assert int(records) == 4848
    assert len(COMMANDS) == 4
    for command in COMMANDS:
        done = in_shell(folder, python, command)
        assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir()} >= {"changes.parquet", "lake"}


def in_shell(folder: Path, python: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of a page, in the environment of this interpreter."""
    return run(folder, "sh", "-c", f'PATH="{python.parent}:$PATH"; {command}')


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def check_commands(page: str, folder: Path, python: Path) -> None:
    """Each command of a page prints what the page says."""
    examples = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks(page, "console")), re.MULTILINE)
    assert examples
    for command, printed in examples:
        done = in_shell(folder, python, command)
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


@pytest.mark.parametrize("command", ["show missing", "show bad.bin", "check dbname=none --slot none"])
def test_an_error_ends_with_the_page_that_explains_it(command: str, python: Path, tmp_path: Path) -> None:
    """On a terminal, which is standard error here: the page is in the installed package."""
    (site,) = python.parents[1].rglob("site-packages")
    (tmp_path / "bad.bin").write_bytes(b"no message")
    ours, theirs = os.openpty()
    program = python.parent / "wireformat"
    subprocess.run([program, *command.split()], cwd=tmp_path, env=OWN, stderr=theirs, stdout=theirs, timeout=120)
    os.close(theirs)
    printed = b""
    with suppress(OSError):  # the other side is closed
        while some := os.read(ours, 1 << 16):
            printed += some
    os.close(ours)
    *_, error, last = printed.decode().splitlines()
    assert error.startswith("wireformat: ")
    page = Path(last.removeprefix("More about this error: "))
    assert page.is_relative_to(site)
    assert page.read_text(encoding="utf-8").startswith("# ")


def test_inspector(python: Path, tmp_path: Path) -> None:
    """A message of the sample in the terminal, and a page of it that needs no network."""
    shutil.copy(ROOT / SAMPLE, tmp_path)
    command = python.parent / "wireformat"
    shown = run(tmp_path, command, "inspect", "--record", "1", "sample_capture.parquet")
    assert shown.returncode == 0
    assert re.search(r"58 +X +tag +'X'", shown.stdout), shown.stdout
    made = run(tmp_path, command, "inspect", "--html", "page.html", "--records", "0-9", "sample_capture.parquet")
    assert (made.returncode, made.stdout) == (0, "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "51,934 records" in page
    assert "default-src &#x27;none&#x27;" in page
