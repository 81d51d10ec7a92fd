"""The output of a command: a file, whose ending selects the format, or standard output."""

from __future__ import annotations

import io
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa

from ..errors import OptionError
from ..sources.find import paths_of
from .exits import BAD_USAGE, Failed
from .options import STDIN, STDOUT
from .table_writers import Write, arrow_file, arrow_stream, csv_rows, json_rows, parquet_rows

Writer = Callable[..., AbstractContextManager[Write]]
"""A writer of table_writers."""

ENDINGS: dict[str, Writer] = {".parquet": parquet_rows, ".arrow": arrow_file, ".csv": csv_rows, ".jsonl": json_rows}
"""The writer for a file, by the end of its name."""

STREAMS: dict[str, Writer] = {"csv": csv_rows, "jsonl": json_rows, "arrow": arrow_stream}
"""The writers for standard output, by the name of their format."""


class CheckedOutput(NamedTuple):
    """An output that was checked.

    name     its name in messages
    path     the path of the file; None for standard output
    writer   writes its format
    """

    name: str
    path: Path | None
    writer: Writer

    @property
    def is_screen(self) -> bool:
        """Whether the table is shown on a terminal."""
        return self.path is None and sys.stdout.isatty()


def find_output(path: Path, to: str | None, inputs: Sequence[str]) -> CheckedOutput:
    """Returns the output that the options name.

    to       a key of STREAMS, only for standard output
    inputs   the files, folders and patterns that are read

    Raises Failed if the output is one of the inputs, or if its format is not known.
    """
    if str(path) == STDOUT:
        return CheckedOutput("standard output", None, _stream_writer(to))
    if to is not None:
        raise Failed(f"--to says what `-o -` writes; of {path} its ending says it: {', '.join(ENDINGS)}", BAD_USAGE)
    writer = ENDINGS.get(path.suffix.lower())
    if writer is None:
        raise Failed(f"{path}: expected a name that ends in {', '.join(ENDINGS)}, or - with --to", BAD_USAGE)
    check_is_no_input(path, inputs)
    return CheckedOutput(str(path), path, writer)


def check_is_no_input(path: Path, inputs: Sequence[str]) -> None:
    """Raises Failed if a file is one of the inputs: files, folders and patterns."""
    for name in inputs if path.exists() else ():
        with suppress(OptionError, OSError):  # the command reports inputs that cannot be read later
            if name != STDIN and any(file.exists() and path.samefile(file) for file in paths_of(name)):
                raise Failed(f"{path}: is an input, and would be overwritten", BAD_USAGE)


def _stream_writer(to: str | None) -> Writer:
    """Returns the writer for standard output; raises Failed."""
    writer = STREAMS.get(to.lower()) if to is not None else None
    if writer is None:
        got = "" if to is None else f", got {to!r}"
        raise Failed(f"-o {STDOUT} needs --to {', '.join(STREAMS)}{got}", BAD_USAGE)
    if not sys.stdout.isatty():
        return writer
    if writer is arrow_stream:
        raise Failed("standard output is a terminal, and Arrow is binary: write to a file or a pipe", BAD_USAGE)
    return partial(writer, on_screen=True) if writer is csv_rows else writer


@contextmanager
def open_output(output: CheckedOutput, schema: pa.Schema) -> Iterator[Write]:
    """Yields the function that takes the rows; see `open_file`. Raises Failed if the file cannot be created."""
    with open_file(output.path) as file, output.writer(file, schema) as write:
        yield write


@contextmanager
def open_file(path: Path | None) -> Iterator[BinaryIO]:
    """Yields a new file, or standard output for None.

    The file has another name in the same folder until the end; after an error nothing is left. It has the mode of the
    file that it replaces. Raises Failed if it cannot be created.
    """
    if path is None:
        yield cast(BinaryIO, _StandardOutput())
        sys.stdout.buffer.flush()  # before the command says what it has written
        return
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise Failed(f"{path} exists and is not a regular file", BAD_USAGE)
    unfinished = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")  # 210 bytes at most
    try:
        with _created(unfinished, str(path)) as file:
            with suppress(OSError):  # there is no such file, or it has no mode
                shutil.copymode(target, unfinished)
            yield file
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):  # it may not exist
            unfinished.unlink()
        raise


class _StandardOutput(io.RawIOBase):
    """Standard output. It writes everything that it is given, also if Python does not buffer it. It stays open."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            rest = rest[sys.stdout.buffer.write(rest) :]
        return size


class _NamedFile(io.FileIO):
    """A new file whose errors have a name: the operating system knows none when it writes to an open file."""

    def __init__(self, path: Path, shown: str) -> None:
        super().__init__(path, "x")
        self._shown = shown

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._shown) from None


def _created(unfinished: Path, name: str) -> BinaryIO:
    """Returns a new file; raises Failed, which names it `name`."""
    try:
        return io.BufferedWriter(_NamedFile(unfinished, name))
    except FileNotFoundError:
        raise Failed(f"{name}: there is no folder {Path(name).parent}", BAD_USAGE) from None
    except OSError as error:
        raise Failed(f"{name}: {error.strerror}", BAD_USAGE) from None
