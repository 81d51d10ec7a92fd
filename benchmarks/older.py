"""An older version of wireformat beside this one, in one run: how many times as fast is it now?

python -m benchmarks.older COMMIT      or a folder that has the package
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from wireformat.options.table_names import written

from . import older_works
from .generate import BINARY, ONE_TABLE, PGOUTPUT, ready_capture

MEGABYTES, ROUNDS = 42.6, 7
PACKAGES = ("wireformat", "spark_udfs")
ROOT = Path(__file__).resolve().parent.parent


class Version:
    """A process that does the works with the package in a folder: those on Spark, or the others."""

    def __init__(self, folder: Path, messages: Path, format: str, *, spark: bool) -> None:
        which = older_works.SPARK if spark else written(ONE_TABLE)
        command = [sys.executable, older_works.__file__, str(messages), format, which]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        self._process = subprocess.Popen(
            command,
            cwd=folder,  # where Spark's workers look first
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, work: str) -> tuple[float, int]:
        """Returns the seconds of a work, and the number of rows that it found."""
        assert self._process.stdin is not None, "it is a pipe"
        assert self._process.stdout is not None, "it is a pipe"
        print(work, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().split()
        if not answer:
            raise RuntimeError(f"{work}: the process ended with {self._process.wait()}; its output says why")
        return float(answer[0]), int(answer[1])

    def end(self) -> None:
        """Ends the process."""
        self._process.communicate()


def compare(
    folders: tuple[Path, Path], messages: Path, format: str, rounds: int, *, spark: bool = False
) -> dict[str, tuple[list[float], list[float]]]:
    """Returns the seconds of each work, of the older version and of this one; the first round does not count.

    Raises RuntimeError if one of them finds another number of rows.
    """
    works = older_works.SPARK_WORKS if spark else older_works.WORKS
    seconds: dict[str, tuple[list[float], list[float]]] = {work: ([], []) for work in works}
    with ExitStack() as stack:
        versions = [Version(folder, messages, format, spark=spark) for folder in folders]
        for version in versions:
            stack.callback(version.end)
        for number in range(rounds + 1):
            for work in works:
                took, rows = zip(*(version.run(work) for version in versions), strict=True)
                if len({*rows}) > 1:
                    raise RuntimeError(f"{work}: the older version found {rows[0]} rows, this one {rows[1]}")
                for found, one in zip(seconds[work], took, strict=True):
                    found += [one] if number else []
    return seconds


app = typer.Typer(add_completion=False)


@app.command()
def main(
    older: Annotated[str, typer.Argument(help="A commit of this repository, or a folder that has the package.")],
    megabytes: Annotated[float, typer.Option(help="Of binary messages.")] = MEGABYTES,
    rounds: Annotated[int, typer.Option(help="Runs of each work; the medians are shown.")] = ROUNDS,
    spark: Annotated[bool, typer.Option("--spark", help="Works on Spark, in place of those of this machine.")] = False,
) -> None:
    """Measure an older version of wireformat beside this one, in turn; on this machine, in one thread."""
    capture = ready_capture(ROOT / "build" / "benchmarks", megabytes)
    shown = Table("format", "work", "older, s", "now, s", "times as fast")
    with TemporaryDirectory() as made:
        folder = Path(older).resolve()
        if not (folder / "wireformat").is_dir():
            folder = Path(made)
            archive = subprocess.run(["git", "archive", older, *PACKAGES], cwd=ROOT, check=True, capture_output=True)
            subprocess.run(["tar", "-x", "-C", made], input=archive.stdout, check=True)
        for format in (BINARY,) if spark else (BINARY, PGOUTPUT):
            for work, found in compare((folder, ROOT), capture.path(format), format, rounds, spark=spark).items():
                before, now = map(median, found)
                shown.add_row(format, work, f"{before:.3f}", f"{now:.3f}", f"{before / now:.1f}")
    Console().print(shown)


if __name__ == "__main__":
    app()
