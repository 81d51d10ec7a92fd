"""The wheel in a clean environment: the command says what is missing, and the README's examples run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from .test_documentation import BLOCK, ROOT, SAMPLE
from .wheels import build_wheel, install, run

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (wireformat .*)$", README, re.MULTILINE)
SQL = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    return build_wheel(tmp_path_factory.mktemp("wheel"))


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
    python = install(wheel, tmp_path / "environment", dependencies=True)
    (site,) = (tmp_path / "environment").rglob("site-packages")
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
        done = run(folder, "sh", "-c", f'PATH="{python.parent}:$PATH"; {command}')
        assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir()} >= {"changes.parquet", "lake"}
