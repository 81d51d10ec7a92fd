"""What is missing without an extra is said in one line that names the extra."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wireformat as wf
from wireformat.errors import PACKAGES, needs

ROOT = Path(__file__).parent.parent


def run_without(missing: str, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter that cannot import a module."""
    blocked = f"import sys; sys.modules[{missing!r}] = None\n{program}"
    return subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize("missing", PACKAGES["cli"])
def test_the_command(missing: str) -> None:
    program = (
        "import runpy; sys.argv = ['wireformat', 'options']; runpy.run_module('wireformat.cli', run_name='__main__')"
    )
    done = run_without(missing, program)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        rf"wireformat: the command needs the extra cli: pip install 'wireformat\[cli\]' \(.*{missing}.*\)\n",
        done.stderr,
    )


@pytest.mark.parametrize("missing", ["pyspark", "pandas"])
def test_spark_udfs(missing: str) -> None:
    done = run_without(missing, "import spark_udfs")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "wireformat.errors.MissingExtra: spark_udfs needs the extra spark: pip install 'wireformat[spark]' ("
    )
    assert missing in last
    assert done.stderr.count("Traceback") == 1


@pytest.mark.parametrize(
    ("example", "missing", "extra"),
    [
        ("demo", "pyspark", "spark"),
        ("demo", "pandas", "spark"),
        ("pandas_functions", "pandas", "spark"),
        ("keep_delta_table_current", "deltalake", "delta"),
    ],
)
def test_an_example(example: str, missing: str, extra: str) -> None:
    done = run_without(missing, f"import runpy; runpy.run_path('examples/{example}.py', run_name='__main__')")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"this example needs the extra {extra}: pip install 'wireformat[{extra}]' (" in last


def test_a_package_that_is_too_old() -> None:
    program = "import pyspark.sql.functions as old; del old.arrow_udtf\nimport spark_udfs"
    done = run_without("nothing", program)
    assert "MissingExtra: spark_udfs needs the extra spark: " in done.stderr
    assert "cannot import name 'arrow_udtf'" in done.stderr


def test_it_is_an_import_error_that_names_the_module() -> None:
    with pytest.raises(ImportError) as raised, needs("spark", "this"):
        raise ModuleNotFoundError("No module named 'pandas.x'", name="pandas.x")
    assert isinstance(raised.value, wf.MissingExtra)
    assert raised.value.name == "pandas.x"


@pytest.mark.parametrize("name", ["wireformat.nowhere", "nowhere", None])
def test_other_modules_are_no_matter_of_an_extra(name: str | None) -> None:
    with pytest.raises(ImportError) as raised, needs("spark", "this"):
        raise ImportError("not there", name=name)
    assert type(raised.value) is ImportError


def test_the_extras_are_those_of_the_package() -> None:
    """Each module that is looked for comes with what the extra lists."""
    modules = {"google": "protobuf"}
    for extra, names in PACKAGES.items():
        required = [
            text for text in importlib.metadata.requires("wireformat") or [] if f"'{extra}'" in text.replace('"', "'")
        ]
        listed = {re.match(r"[\w-]+", text)[0] for text in required}  # type: ignore[index]
        assert listed == {modules.get(name, name) for name in names}
