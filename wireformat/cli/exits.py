"""How a command ends: exit codes, errors as one line of text, and standard streams that are closed."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from ..errors import OptionError, WireformatError
from .screen import say

BAD_DATA = 1
BAD_USAGE = 2
SIGNALLED = 128
"""Plus the number of a signal: the exit code after it, as in shells."""


class OutputClosed(BrokenPipeError):
    """The reader of standard output has closed it. The error has no number, by which Typer would end the command."""


class Failed(Exception):
    """The command cannot go on. The text says why, `code` is the exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


PAGE = "errors.md"
"""The page that explains errors, which is part of a wheel."""


NOT_UTF8 = re.compile(r"[\udc80-\udcff]")
"""The characters in which Python keeps the bytes of an argument that are not UTF-8."""

NO_UTF8 = "" if sys.getfilesystemencoding() == "utf-8" else "; Python does not use UTF-8 here: set PYTHONUTF8=1"
"""What an error about such bytes adds."""


@contextlib.contextmanager
def exit_codes() -> Iterator[None]:
    """Turns the errors of a command into text on standard error and an exit code.

    If the reader of standard output closes it, the command ends without an error. Exceptions of other classes are
    faults of this program, and keep their traceback. Raises typer.Exit.
    """
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        _discard_output()
        # If the interrupt came while Python executed a text, as dataclasses do, Python started with -m ends by the
        # signal, whatever the exit code. It remembers only the last text that it executed.
        exec("")
        raise typer.Exit(SIGNALLED + next(iter(interrupt.args), signal.SIGINT)) from None
    except OutputClosed:
        _discard_output()
        raise typer.Exit from None
    except Failed as error:
        raise _reported(str(error), error.code) from None
    except UnicodeEncodeError as error:
        if not NOT_UTF8.search(error.object):
            raise
        raise _reported(f"{error.object}: expected a name in UTF-8{NO_UTF8}", BAD_USAGE) from None
    except (WireformatError, OSError) as error:
        text = in_words_of_the_command(text_of_os_error(error) if isinstance(error, OSError) else str(error))
        raise _reported(text, BAD_USAGE if isinstance(error, OptionError) else BAD_DATA) from None


def text_of_os_error(error: OSError) -> str:
    """Returns what is wrong with which file, without the number of the error."""
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


_WORDS = {
    "as `encoding`": "with --encoding",
    ": rename it": NO_UTF8 or ": rename it",
    ", or on Spark pass order_by to decode, or use spark_udfs.capture": "",
    "see reconnect_seconds": "see --reconnect-seconds",
    "in `schema`": "in --schema",
    "columns as keys": "columns with --keys",
    "or a schema": "or --schema",
    "pass the format of the messages": "pass it with -f",
    "pass after=wireformat.lake.position(folder), and messages that begin there": "pass --go-on, and messages that "
    "begin where the lake ends",
    "messages as column": "messages as --column",
    "pass the format ": "pass -f ",
    "name the key columns, or [] for the whole row": "name the key columns with --keys COLUMN, or for "
    "`write` with --keys TABLE=COLUMN",
    ", or [] for the whole row": "",
    "pass as `after` the position where the input begins, or messages": "pass messages",
    "as partition_by": "with --partition-by",
    "give a mapping of table to column, or": "pass a column that all tables have, or",
    "option batch_bytes: expected a whole number from 1 on": "--batch-mb: expected a number above 0",
    "option folder": "--to",
    "; pass filesystem or storage_options": "",
    "option options": "--option",
    "option schemas": "--schema",
    "without `after`": "without --go-on",
    "decode in DROPMALFORMED mode or filter CORRUPT records out": "pass --mode DROPMALFORMED, or for `write` and "
    "`follow` --rejects",
}
"""Advice for Python and Spark, and the same advice for the command. The format of messages is -f in all commands, but
--format is that of the lake in those that write one."""


def in_words_of_the_command(text: str) -> str:
    """Returns the text of an error, with its advice in options of the command."""
    for words, here in _WORDS.items():
        text = text.replace(words, here)
    text = re.sub(r"\boption (\w+_\w+)", lambda found: "--" + found[1].replace("_", "-"), text)
    return re.sub(r"\b(format|mode|publication|state|via)='(\w+)'", r"--\1 \2", text)


class _Output(io.FileIO):
    """The bytes of standard output. Its errors say what is closed."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise OutputClosed("standard output was closed by its reader") from None
        except OSError as error:
            text = " is closed" if error.errno == errno.EBADF else f": {error.strerror}"
            raise OSError(error.errno, f"standard output{text}") from None


class _Report(io.FileIO):
    """The bytes of standard error. What cannot be written is lost: a command goes on without its reader."""

    def write(self, data: Any, /) -> int:
        with contextlib.suppress(OSError):
            return super().write(data)
        return len(data)


def catch_signals() -> None:
    """Makes SIGTERM and SIGHUP end the command as Ctrl-C does, so that it leaves nothing; not one that is ignored."""
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:  # Windows has one of them
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt(number)


class _Warnings(logging.Handler):
    """Prints what the package logs as errors are printed: it may name tables of a capture."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"wireformat: {record.getMessage()}")


def prepare_streams() -> None:
    """Makes it possible to print any text and warning, also in a process without standard streams (`2>&-`).

    Characters that the encoding of standard output lacks are printed as escapes, as on standard error. What is printed
    to a standard output that is closed raises OSError, or OutputClosed if its reader closed it.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115 - as long as the process
    sys.stdout = _prepared(sys.stdout, _Output, os.O_RDONLY)  # a write to the null device then fails
    sys.stderr = _prepared(sys.stderr, _Report, os.O_WRONLY)
    logging.getLogger("wireformat").addHandler(_Warnings())


def _prepared(stream: Any, kind: type[io.FileIO], flags: int) -> Any:
    """Returns a standard stream whose bytes are written by a class.

    stream   None if the process has no such stream
    flags    opens the null device in its place
    """
    if stream is None:
        return io.TextIOWrapper(io.BufferedWriter(kind(os.open(os.devnull, flags), "w")), "utf-8", "backslashreplace")
    if not isinstance(stream, io.TextIOWrapper) or os.name != "posix":  # a console of Windows has a class of its own
        return stream
    raw = kind(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        raw if isinstance(stream.buffer, io.FileIO) else io.BufferedWriter(raw),
        stream.encoding,
        "backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def page_path() -> Path:
    """Returns the path of the page about errors: in the installed package, or in a clone of the repository."""
    package = Path(__file__).parents[1]
    installed = package / "pages" / PAGE
    return installed if installed.exists() else package.parent / "docs" / PAGE


def _reported(text: str, code: int) -> typer.Exit:
    """Prints an error; returns the exception that ends the command."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    say(f"wireformat: {text}")
    if sys.stderr.isatty():
        say(f"More about this error: {page_path()}")
    return typer.Exit(code)


def _discard_output() -> None:
    """Discards what is still buffered, so that the interpreter's last flush does not fail."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
