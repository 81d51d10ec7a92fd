"""The wheel in a clean environment: the command says what is missing, and the README's examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from .test_documentation import BLOCK, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (wireformat .*)$", README, re.MULTILINE)
SCRIPTS = "Scripts" if sys.platform == "win32" else "bin"
OWN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK_"))}

pytestmark = pytest.mark.slow


def run(folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with nothing of this test's surroundings but Java and PATH."""
    return subprocess.run([*map(str, command)], cwd=folder, env=OWN, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    built = run(ROOT, sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


def install(wheel: Path, folder: Path) -> Path:
    """An environment with the wheel and nothing else; returns its interpreter."""
    venv.create(folder, with_pip=True)
    python = folder / SCRIPTS / "python"
    installed = run(folder, python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
    assert installed.returncode == 0, installed.stderr
    return python


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
def test_examples_of_the_readme(wheel: Path, tmp_path: Path) -> None:
    """With this environment's dependencies, from an empty folder: the Python ones, then those for the shell."""
    python = install(wheel, tmp_path / "environment")
    (site,) = (tmp_path / "environment").rglob("site-packages")
    site.joinpath("dependencies.pth").write_text(
        "\n".join({sysconfig.get_path(name) for name in ("purelib", "platlib")})
    )
    folder = tmp_path / "empty"
    folder.mkdir()
    for package in ("wireformat", "spark_udfs"):
        found = run(folder, python, "-c", f"import {package}; print({package}.__file__)")
        assert Path(found.stdout.strip()).is_relative_to(site), found.stderr
    program = tmp_path / "readme.py"
    program.write_text("\n".join(BLOCK.findall(README)), encoding="utf-8")
    done = run(folder, python, program)
    assert done.returncode == 0, done.stderr
    assert "orders" in done.stdout
    assert len(COMMANDS) == 4
    for command in COMMANDS:
        done = run(folder, "sh", "-c", f'PATH="{python.parent}:$PATH"; {command}')
        assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir()} >= {"capture.parquet", "changes.parquet", "batched.parquet"}
