"""The wheel in environments of its own: built, installed, and programs that run in them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from .java_settings import short_queries

ROOT = Path(__file__).parent.parent
SCRIPTS = "Scripts" if sys.platform == "win32" else "bin"
OWN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK_"))}
"""The environment of programs: machine code is that of this user, which the sources alone decide."""


def run(folder: Path, *command: object, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder, with nothing of the test's surroundings but Java and PATH; `given` is its input."""
    return subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=OWN | short_queries(),
        input=given,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )


def build_wheel(folder: Path) -> Path:
    """Builds the wheel in a folder."""
    built = run(ROOT, sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


def install(wheel: Path, folder: Path, *, dependencies: bool = False) -> Path:
    """Makes an environment with the wheel and nothing else, or with this environment's packages too.

    Returns its interpreter.
    """
    venv.create(folder)
    python = folder / SCRIPTS / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    installed = run(folder, *pip, "install", "--quiet", "--no-index", "--no-deps", wheel)
    assert installed.returncode == 0, installed.stderr
    if dependencies:
        (site,) = folder.rglob("site-packages")
        paths = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
        site.joinpath("dependencies.pth").write_text("\n".join(paths))
    return python
