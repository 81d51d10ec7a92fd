"""What is checked of a release, and the one place of its version."""

from __future__ import annotations

import re
import tarfile
import zipfile
from importlib.metadata import version as installed_version
from pathlib import Path

import pytest

import wireformat
from tools.release.__main__ import TOOLS, pythons, version
from tools.release.contents import MUST_HAVE, SOURCES, faults_of_source, faults_of_wheel
from tools.release.smaller import make_smaller
from wireformat.cli import exits

from ..wheels import ROOT, build_wheel


def zipped(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, "")
    return path


def test_version_is_in_one_place() -> None:
    assert version() == wireformat.__version__ == installed_version("wireformat")
    assert re.findall(r"^version", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE) == []
    assert re.search(
        rf"^## .*{re.escape(version())}", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )


def test_tools_are_those_of_the_extra() -> None:
    (listed,) = re.findall(r"^release = \[(.*)\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(re.findall(r'"(\w+)>', listed)) == TOOLS
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert all(re.search(rf"^{name}==", pinned, re.MULTILINE) for name in TOOLS)


def test_pythons() -> None:
    assert pythons()[0] == "3.10"
    assert "3.13" in pythons()


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_a.py",
        "wireformat/tests/a.py",
        "spark_udfs/conftest.py",
        "tools/a.py",
        "wireformat/notes.md",
        "wireformat/pages/notes.md",
    ],
)
def test_what_does_not_belong_into_a_wheel(name: str, tmp_path: Path) -> None:
    good = (*MUST_HAVE, "wireformat/formats/test_decoding.py", "wireformat-1.dist-info/METADATA")
    assert list(faults_of_wheel(zipped(tmp_path / "a.whl", *good))) == []
    assert any(name.split("/")[0] in fault for fault in faults_of_wheel(zipped(tmp_path / "b.whl", *good, name)))


def test_what_a_wheel_must_have(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.whl", *MUST_HAVE[1:])
    assert list(faults_of_wheel(path)) == ["a.whl: wireformat/py.typed is missing"]
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("wireformat/py.typed", bytes(1_000_001))
    (fault,) = faults_of_wheel(path)
    assert re.fullmatch(r"a\.whl: expected at most 1000000 bytes, got 100\d{4}", fault)


def test_a_wheel_has_the_page_that_errors_name() -> None:
    assert f"wireformat/pages/{exits.PAGE}" in MUST_HAVE


def test_what_a_source_distribution_must_have(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        for name in (*SOURCES[1:], "tests/__pycache__/a.pyc"):
            archive.addfile(tarfile.TarInfo(f"wireformat-1/{name}"))
    assert list(faults_of_source(tmp_path / "a.tar.gz")) == [
        f"a.tar.gz: {SOURCES[0]} is missing",
        "a.tar.gz: tests/__pycache__/a.pyc is a product of a build",
    ]


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, which are checked against their checksums."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


@pytest.mark.slow
def test_the_wheel_is_as_it_should_be(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    pytest.importorskip("zopfli")
    wheel = build_wheel(tmp_path)
    before = contents(wheel)
    make_smaller(wheel)
    assert contents(wheel) == before
    assert list(faults_of_wheel(wheel)) == []
