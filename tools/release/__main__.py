"""`python -m tools.release`: builds the wheel and the source distribution in dist/ and checks them; uploads nothing.

Environments are made in build/release: one with the tools, and one for each Python of pyproject.toml that is found, on
PATH, with uv or with pyenv. `lowest` has the lowest versions that pyproject.toml allows, on the oldest of them.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .contents import faults_of_source, faults_of_wheel
from .smaller import make_smaller

ROOT = Path(__file__).parents[2]
WORK = ROOT / "build" / "release"
DIST = ROOT / "dist"
SAMPLE = Path(__file__).with_name("sample.py")
CONSTRAINTS = ROOT / "constraints.txt"
BIN = "Scripts" if sys.platform == "win32" else "bin"
TOOLS = ("basedpyright", "build", "mypy", "twine", "uv")
"""Those of the extra release."""


def version() -> str:
    """Returns the version, from the one place that has it."""
    text = (ROOT / "wireformat" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.*)"$', text, re.MULTILINE)
    assert found is not None
    return found[1]


def pythons() -> list[str]:
    """Returns the versions of Python that pyproject.toml names, oldest first."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)


def run(*command: object, cwd: Path = ROOT) -> None:
    """Runs a command; ends this one where it fails."""
    words = [str(word) for word in command]
    if subprocess.run(words, check=False, cwd=cwd).returncode:
        raise SystemExit(f"Failed: {' '.join(words)}")


def make_tools() -> Path:
    """Makes the environment with the tools; returns its folder of programs."""
    folder = WORK / "tools"
    programs = folder / BIN
    if not (programs / "python").exists():
        run(sys.executable, "-m", "venv", folder)
    run(programs / "python", "-m", "pip", "install", "--quiet", "--constraint", CONSTRAINTS, *TOOLS)
    return programs


def build(programs: Path) -> tuple[Path, Path]:
    """Builds both files; the wheel is made from the source distribution. Returns their paths."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(programs / "python", "-m", "build", "--outdir", DIST)
    (wheel,), (source,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    make_smaller(wheel)
    return wheel, source


def check_files(programs: Path, wheel: Path, source: Path) -> None:
    """Checks texts, contents, size and version of both files."""
    run(programs / "python", "-m", "twine", "check", "--strict", wheel, source)
    faults = [*faults_of_wheel(wheel), *faults_of_source(source)]
    faults += [f"{path.name} is not of version {version()}" for path in (wheel, source) if version() not in path.name]
    if not re.search(rf"^## .*\b{re.escape(version())}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        faults.append(f"CHANGELOG.md has no section for {version()}")
    if faults:
        raise SystemExit("\n".join(faults))
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes; {source.name}: {source.stat().st_size:,} bytes")


def find_python(programs: Path, name: str) -> str | None:
    """Returns the path of an interpreter of this version."""
    for command in ([f"python{name}", "-c", _TELL], [programs / "uv", "python", "find", "--quiet", name]):
        try:
            done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            continue
        if done.returncode == 0 and (found := done.stdout.strip()):
            return found
    found_there = sorted(Path.home().joinpath(".pyenv", "versions").glob(f"{name}.*/bin/python"))
    return str(found_there[-1]) if found_there else None


_TELL = "import sys; print(sys.executable)"


def check_installation(programs: Path, wheel: Path, name: str, interpreter: str) -> Path:
    """Installs the wheel in a new environment and runs the sample and the command there; returns its interpreter."""
    folder = WORK / name
    run(programs / "uv", "venv", "--quiet", "--clear", "--python", interpreter, folder)
    python = folder / BIN / "python"
    chosen = ["--resolution", "lowest-direct"] if name == "lowest" else ["--constraint", CONSTRAINTS]
    run(programs / "uv", "pip", "install", "--quiet", "--python", python, *chosen, f"{wheel}[cli]")
    run(programs / "uv", "pip", "check", "--quiet", "--python", python)
    run(python, "-I", SAMPLE, cwd=WORK)
    shown = subprocess.run([python.with_name("wireformat"), "formats"], cwd=WORK, capture_output=True, check=False)
    if shown.returncode or b"pgoutput" not in shown.stdout:
        raise SystemExit(f"{name}: the command wireformat does not list the formats")
    return python


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("pythons", nargs="*", help="the versions to install on; without them, all that are found")
    given = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    programs = make_tools()
    wheel, source = build(programs)
    check_files(programs, wheel, source)
    found = {name: path for name in given.pythons or pythons() if (path := find_python(programs, name))}
    for name in set(given.pythons or pythons()) - set(found):
        print(f"Python {name}: not found, left out")
    if not found:
        raise SystemExit("None of the Pythons was found.")
    interpreters = {"lowest": next(iter(found.values())), **found}
    installed = [check_installation(programs, wheel, name, interpreter) for name, interpreter in interpreters.items()]
    python = installed[-1]
    run(programs / "mypy", "--strict", "--python-executable", python, SAMPLE, cwd=WORK)
    run(programs / "basedpyright", "--level", "error", "--pythonpath", python, SAMPLE, cwd=WORK)
    print(f"{wheel.name} and {source.name} are ready in {DIST}. Upload them with: twine upload dist/*")


if __name__ == "__main__":
    main()
