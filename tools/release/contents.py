"""What may be in a wheel and in a source distribution."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

MOST_WHEEL_BYTES = 1_000_000
PACKAGES = ("wireformat", "spark_udfs")
MUST_HAVE = (
    *("wireformat/py.typed", "spark_udfs/py.typed", "wireformat/__init__.py", "spark_udfs/__init__.py"),
    "wireformat/pages/errors.md",  # which errors name
)
SOURCES = ("tests/__init__.py", "docs/conf.py", "CHANGELOG.md", "README.md", "LICENSE", "Makefile", "constraints.txt")
"""Some of what a source distribution must have, so that its tests and its site can be built from it."""


def faults_of_wheel(path: Path) -> Iterator[str]:
    """Yields what is wrong with a wheel."""
    if (size := path.stat().st_size) > MOST_WHEEL_BYTES:
        yield f"{path.name}: expected at most {MOST_WHEEL_BYTES} bytes, got {size}"
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
    tops = {name.split("/")[0] for name in names}
    for top in sorted(tops - set(PACKAGES)):
        if not top.endswith(".dist-info"):
            yield f"{path.name}: expected the packages {' and '.join(PACKAGES)} alone, got {top}"
    for name in names:
        parts = name.split("/")
        if "tests" in parts or parts[-1] == "conftest.py" or not _is_used(name):
            yield f"{path.name}: {name} does not belong into a wheel"
    for name in MUST_HAVE:
        if name not in names:
            yield f"{path.name}: {name} is missing"


def faults_of_source(path: Path) -> Iterator[str]:
    """Yields what is wrong with a source distribution."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    yield from (f"{path.name}: {name} is missing" for name in SOURCES if name not in names)
    yield from (f"{path.name}: {name} is a product of a build" for name in names if "__pycache__" in name)


def _is_used(name: str) -> bool:
    endings = (".py", "py.typed", ".properties", ".html")
    return name.endswith(endings) or ".dist-info/" in name or name in MUST_HAVE
