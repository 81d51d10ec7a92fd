"""The capture that a command reads: from files, folders and standard input, with a progress bar."""

from __future__ import annotations

import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ...capture import Capture
from ...errors import OptionError, WireformatError
from ...formats.registry import find_format
from ...sources.find import find_sources
from ...sources.parquet_files import ParquetSource
from ...sources.source import Source
from ...temporary import NO_ROOM, naming_the_folder
from ..decoding import is_empty_text
from ..exits import BAD_DATA, BAD_USAGE, Failed, in_words_of_the_command, text_of_os_error
from ..inputs import progress
from ..options import STDIN
from ..screen import say


class Opened(NamedTuple):
    """A capture, and the sources that it reads."""

    capture: Capture
    sources: list[Source]


@contextmanager
def opened(
    paths: Sequence[str], *, on_screen: bool, format: str, column: str | None, **options: Any
) -> Iterator[Opened]:
    """Yields the capture of some files and folders. Its errors become those of the command.

    on_screen   whether the command prints to the terminal; there is then no progress bar
    options     those of Capture

    Raises Failed.
    """
    copies: dict[str, str] = {}
    try:
        with ExitStack() as held:
            try:
                files = _files(paths, held, copies)
                sources = find_sources(files, find_format(format), column)
            except OSError as error:  # without the name of a file, it is about the content of one
                code = BAD_DATA if error.filename is None or error.errno in NO_ROOM else BAD_USAGE
                raise Failed(_with_given_names(text_of_os_error(error), copies), code) from None
            for source in sources:
                if source.size == 0 or (isinstance(source, ParquetSource) and not source.has_rows):
                    say(_with_given_names(is_empty_text(source.name), copies))
            advance = held.enter_context(progress(sources, on_screen=on_screen))
            yield Opened(Capture(files, format, column=column, progress=advance, **options), sources)
    except OptionError as error:
        raise Failed(_with_given_names(str(error), copies), BAD_USAGE) from None
    except WireformatError as error:
        raise Failed(_with_given_names(str(error), copies), BAD_DATA) from None


def _with_given_names(text: str, copies: dict[str, str]) -> str:
    """Returns the text of an error, with the names that the user gave in place of those of copies."""
    for copy, name in copies.items():
        text = text.replace(copy, name)
    return in_words_of_the_command(text)


def _files(paths: Sequence[str], held: ExitStack, copies: dict[str, str]) -> list[str]:
    """Returns the paths. Standard input and pipes are copied to files: a capture may read its files more than once.

    held     deletes the copies at its end
    copies   gets the path of each copy, with the name of its original
    """
    if paths.count(STDIN) > 1:
        raise Failed(f"{STDIN} (standard input) can be read only once", BAD_USAGE)
    return [_copied(path, held, copies) if path == STDIN or _is_stream(path) else path for path in paths]


def _is_stream(path: str) -> bool:
    """Whether a path can be read only once, such as `<(zcat capture.bin.gz)` in a shell."""
    try:
        kind = Path(path).stat().st_mode
    except (OSError, ValueError):  # opening it later says what is wrong
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)


def _copied(path: str, held: ExitStack, copies: dict[str, str]) -> str:
    """Returns the path of a copy of a file that can be read only once."""
    with ExitStack() as opened, naming_the_folder():
        file = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="wireformat-"))) / "messages"
        copies[str(file)] = "standard input" if path == STDIN else path
        source = sys.stdin.buffer if path == STDIN else opened.enter_context(Path(path).open("rb"))
        with file.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    return str(file)
