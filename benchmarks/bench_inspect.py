"""Seconds that the command line takes for its help, and for the last message and the tables of a large file."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from time import perf_counter

from .generate import BINARY, CHANGES_PER_TRANSACTION, Capture
from .measure import Result, Say, interleaved

HELP = "wireformat --help"
LAST_MESSAGE = "wireformat inspect --message, the last one of a file"
TABLES = "wireformat tables, of a file"
TEST_DECODING = "test-decoding"

LINES = (
    b"BEGIN 733\n"
    + b"table public.orders: INSERT: id[integer]:1 name[text]:'two days' price[numeric]:12.50\n"
    * CHANGES_PER_TRANSACTION
    + b"COMMIT 733\n"
)
"""A transaction of test_decoding: a message is a line."""


FORMATS = (BINARY, TEST_DECODING)


def of_format(format: str, command: str = LAST_MESSAGE) -> str:
    """The name of the contestant that runs the command on a file of the format."""
    return f"{command}, {format}"


def measure(capture: Capture, size: int, rounds: int, folder: Path, say: Say) -> dict[str, Result]:
    """Results by name, for files of this many bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    messages = capture.load(BINARY)["payload"].to_pylist()
    blocks = {BINARY: (b"".join(messages), len(messages)), TEST_DECODING: (LINES, LINES.count(b"\n"))}
    commands = {HELP: (["--help"], b"inspect", 0)}
    for format, (block, count) in blocks.items():
        file, times = folder / f"{format}.bin", -(-size // len(block))
        say(f"writing {file.name}")
        with file.open("wb") as out:
            for _ in range(times):
                out.write(block)
        last = times * count - 1
        arguments = ["inspect", "--format", format, "--message", str(last), "--record", "0", str(file)]
        size_read = file.stat().st_size
        commands[of_format(format)] = (arguments, f"message {last}".encode(), size_read)
        commands[of_format(format, TABLES)] = (["tables", "--format", format, str(file)], b"orders", size_read)
    seconds = interleaved(
        {name: partial(run, arguments, expected) for name, (arguments, expected, _) in commands.items()}, rounds, say
    )
    for format in blocks:
        (folder / f"{format}.bin").unlink()
    return {
        name: Result(name=name, input_bytes=read, changes=1, columns=1, seconds=seconds[name])
        for name, (_, _, read) in commands.items()
    }


def run(arguments: list[str], expected: bytes) -> float:
    """Seconds that the command takes, whose output must hold the expected bytes."""
    began = perf_counter()
    done = subprocess.run([sys.executable, "-m", "wireformat", *arguments], capture_output=True, check=True)
    seconds = perf_counter() - began
    if expected not in done.stdout:
        raise AssertionError(f"the output of {arguments} does not hold {expected!r}")
    return seconds
