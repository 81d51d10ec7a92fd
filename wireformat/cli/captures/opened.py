"""The capture of a command: its files, standard input among them, and how much of them has been read."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ...capture import Capture
from ...errors import OptionError, WireformatError
from ...formats.base import Format
from ...formats.registry import find_format
from ...sources.find import find_sources
from ...sources.source import Source
from ..exits import BAD_DATA, BAD_USAGE, Failed, in_words_of_the_command
from ..options import STDIN
from ..progress import progress


@contextmanager
def opened(
    paths: Sequence[str], *, readings: int, on_screen: bool, format: str, column: str | None, **options: Any
) -> Iterator[Capture]:
    """Yields the capture of some files and folders; its errors become those of the command.

    readings    how often the command reads it
    on_screen   the command prints to the terminal: then there is no progress bar

    Raises Failed.
    """
    try:
        with ExitStack() as held:
            found = _files(paths, held)
            sources = _sources(found, find_format(format), column)
            advance = held.enter_context(progress(sources * readings, on_screen=on_screen))
            yield Capture(found, format, column=column, progress=advance, **options)
    except OptionError as error:
        raise Failed(in_words_of_the_command(str(error)), BAD_USAGE) from None
    except WireformatError as error:
        raise Failed(in_words_of_the_command(str(error)), BAD_DATA) from None


def _sources(paths: Sequence[str], format: Format, column: str | None) -> list[Source]:
    try:
        return find_sources(paths, format, column)
    except OSError as error:
        name = "" if error.filename is None else f"{error.filename}: "
        raise Failed(f"{name}{error.strerror or error}", BAD_USAGE) from None


def _files(paths: Sequence[str], held: ExitStack) -> list[str]:
    """Returns the paths, with a file in place of standard input, which a capture reads more than once."""
    if paths.count(STDIN) > 1:
        raise Failed(f"{STDIN} (standard input) can be read only once", BAD_USAGE)
    if STDIN not in paths:
        return [*paths]
    folder = held.enter_context(tempfile.TemporaryDirectory(prefix="wireformat-"))
    file = Path(folder) / "standard input"
    with file.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return [str(file) if path == STDIN else path for path in paths]
