"""The inputs of a command: Parquet files, files of concatenated messages and standard input; and their format.

If the command names no format, it is guessed from the first messages, and reported on standard error.
A progress bar on standard error, if that is a terminal, shows how much of them has been read.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..errors import OptionError
from ..formats.base import Format
from ..formats.guess import Guess
from ..formats.registry import find_format
from ..inspection.reading import guess_scanned
from ..options import ReadOptions
from ..sources.files import (
    LINES_HEAD_BYTES,
    PARQUET_MAGIC,
    MessageSource,
    file_source,
    growing_source,
    stream_source,
)
from ..sources.picked import choose_format, guess_of_bytes, guess_of_source
from ..sources.source import Source, SourceMessages
from .exits import BAD_DATA, BAD_USAGE, Failed, in_words_of_the_command, text_of_os_error
from .options import DEFAULT_FORMAT, STDIN
from .screen import say


@contextmanager
def find_inputs(
    paths: Sequence[str], format: Format, column: str | None, *, follow: bool = False
) -> Iterator[list[Source]]:
    """Yields the inputs, which are all opened before the first is read. Raises Failed for one that cannot be read.

    paths    files, or "-" for standard input; a Parquet file is recognised by its first bytes
    column   the binary column of Parquet files with the messages
    follow   whether the last file grows; its source then never ends
    """
    if paths.count(STDIN) > 1:
        raise Failed(f"{STDIN} (standard input) can be read only once", BAD_USAGE)
    with ExitStack() as held:
        inputs = [_find_input(path, format, column, held) for path in paths]
        if follow and not isinstance(inputs[-1], MessageSource):
            raise Failed(f"{paths[-1]}: a Parquet file does not grow, so it cannot be followed", BAD_USAGE)
        if follow and inputs[-1].is_repeatable:
            inputs[-1] = growing_source(Path(paths[-1]), paths[-1], format)
        yield inputs


def all_messages(inputs: Iterable[Source]) -> Iterator[SourceMessages]:
    """Yields the messages of all inputs, one input after the other; raises Failed if one cannot be read."""
    for input in inputs:
        try:
            yield from input.read()
        except OptionError as error:
            text = str(error).removeprefix("option format: ")
            raise Failed(in_words_of_the_command(text), BAD_USAGE) from None
        except OSError as error:
            raise Failed(str(error), BAD_DATA) from None


def _find_input(path: str, format: Format, column: str | None, held: ExitStack) -> Source:
    """Returns the input of a path; `held` keeps open what must stay open until the input is read. Raises Failed."""
    try:
        if path == STDIN:
            return stream_source("standard input", sys.stdin.buffer, format, column, held)
        return _file(path, format, column, held)
    except OptionError as error:
        raise Failed(in_words_of_the_command(str(error).removeprefix("option column: ")), BAD_USAGE) from None
    except OSError as error:  # the file is damaged, or standard input cannot be read or copied
        raise Failed(text_of_os_error(error), BAD_DATA) from None


def _file(path: str, format: Format, column: str | None, held: ExitStack) -> Source:
    """Returns the input of a file or a pipe; raises Failed."""
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - a pipe stays open until it is read
    except IsADirectoryError:
        raise Failed(f"{path}: is a folder; expected a file, or files such as {Path(path) / '*'}", BAD_USAGE) from None
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}", BAD_USAGE) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return stream_source(path, held.enter_context(file), format, column, held)
    file.close()
    return file_source(Path(path), path, format, column)


@contextmanager
def progress(inputs: Sequence[Source], *, on_screen: bool = False) -> Iterator[Callable[[int], None]]:
    """Shows how much of the inputs has been read. Yields a function to call with the bytes read since the last call.

    on_screen   whether the command prints to the terminal; there is then no bar
    """
    if on_screen or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    sizes = [input.size for input in inputs]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(size: int) -> None:
            bar.advance(task, size)
            shown = bar.tasks[task]
            if total and shown.total is not None and shown.completed > shown.total:
                bar.update(task, total=shown.total + total)  # the inputs are read again

        yield advance


def guessed_format(paths: Sequence[str], given: str | None, column: str | None, *, says_usual: bool = True) -> str:
    """Returns the format that was given, or guesses it from the first input and says so.

    says_usual   whether to report the guess if it is the usual format

    There is no guess for a Parquet file in a pipe, or for an input that cannot be read: the command then reports what
    is wrong with it.
    """
    if given is not None:
        return given
    path = paths[0]
    try:
        if path == STDIN:
            guess = _guess_of_pipe()
        elif Path(path).is_file():
            guess = _guess_of_file(path, column)
        elif Path(path).exists() and not Path(path).is_dir():
            guess = Guess(None, (), f"{path} cannot be read twice", 0)
        else:
            guess = None
    except (OSError, ValueError, OverflowError):
        guess = None
    return DEFAULT_FORMAT if guess is None else _chosen(guess, says_usual=says_usual)


def format_of_bytes(data: bytes, given: str | None) -> str:
    """Returns the format that was given, or guesses it from bytes that begin with a message."""
    return given if given is not None else _chosen(guess_of_bytes(data[:LINES_HEAD_BYTES]))


def scanned_format(data: bytes, given: str | None, options: ReadOptions) -> str:
    """Returns the format that was given, or guesses it from the records in bytes whose beginning is missing."""
    return given if given is not None else _chosen(guess_scanned(data, options))


def _chosen(guess: Guess, *, says_usual: bool = True) -> str:
    name, reason = choose_format(guess, DEFAULT_FORMAT)
    if says_usual or name != DEFAULT_FORMAT:
        say(f"format {name}, guessed: {reason}; --format overrides this")
    return name


def _guess_of_pipe() -> Guess | None:
    """Returns the likely format of standard input; None if it cannot be examined."""
    peek = getattr(sys.stdin.buffer, "peek", None)
    head = peek(LINES_HEAD_BYTES) if peek is not None else b""
    return None if not head or head.startswith(PARQUET_MAGIC) else guess_of_bytes(head)


def _guess_of_file(path: str, column: str | None) -> Guess | None:
    """Returns the likely format of a file; None if it is empty."""
    with Path(path).open("rb") as file:
        head = file.read(LINES_HEAD_BYTES)
    if head.startswith(PARQUET_MAGIC):
        return guess_of_source(file_source(Path(path), path, find_format(DEFAULT_FORMAT), column))
    return guess_of_bytes(head) if head else None
