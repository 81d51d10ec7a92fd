"""The capture of a command: its files, standard input among them, and how much of them has been read."""

from __future__ import annotations

import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ...capture import Capture
from ...errors import OptionError, WireformatError
from ...formats.registry import find_format
from ...sources.find import find_sources
from ..exits import BAD_DATA, BAD_USAGE, Failed, in_words_of_the_command, text_of_os_error
from ..options import STDIN
from ..progress import progress


@contextmanager
def opened(
    paths: Sequence[str], *, on_screen: bool, format: str, column: str | None, **options: Any
) -> Iterator[Capture]:
    """Yields the capture of some files and folders; its errors become those of the command.

    on_screen   the command prints to the terminal: then there is no progress bar

    Raises Failed.
    """
    copies: dict[str, str] = {}
    try:
        with ExitStack() as held:
            try:
                files = _files(paths, held, copies)
                sources = find_sources(files, find_format(format), column)
            except OSError as error:  # one that names no file is of a damaged one
                code = BAD_DATA if error.filename is None else BAD_USAGE
                raise Failed(_with_given_names(text_of_os_error(error), copies), code) from None
            advance = held.enter_context(progress(sources, on_screen=on_screen))
            yield Capture(files, format, column=column, progress=advance, **options)
    except OptionError as error:
        raise Failed(_with_given_names(str(error), copies), BAD_USAGE) from None
    except WireformatError as error:
        raise Failed(_with_given_names(str(error), copies), BAD_DATA) from None


def _with_given_names(text: str, copies: dict[str, str]) -> str:
    """The text of an error, with the names that the user gave in place of those of copies."""
    for copy, name in copies.items():
        text = text.replace(copy, name)
    return in_words_of_the_command(text)


def _files(paths: Sequence[str], held: ExitStack, copies: dict[str, str]) -> list[str]:
    """Returns the paths, with copies in place of standard input and pipes: a capture reads its files more than once.

    copies   gets the names of the copies, with what they are copies of
    """
    if paths.count(STDIN) > 1:
        raise Failed(f"{STDIN} (standard input) can be read only once", BAD_USAGE)
    return [_copied(path, held, copies) if path == STDIN or _is_stream(path) else path for path in paths]


def _is_stream(path: str) -> bool:
    """Whether a path is of what can be read only once, as `<(zcat capture.bin.gz)` of a shell."""
    try:
        kind = Path(path).stat().st_mode
    except (OSError, ValueError):  # whoever opens it says what is wrong
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)


def _copied(path: str, held: ExitStack, copies: dict[str, str]) -> str:
    folder = held.enter_context(tempfile.TemporaryDirectory(prefix="wireformat-"))
    file = Path(folder) / "messages"
    copies[str(file)] = "standard input" if path == STDIN else path
    with ExitStack() as opened, file.open("wb") as copy:
        source = sys.stdin.buffer if path == STDIN else opened.enter_context(Path(path).open("rb"))
        shutil.copyfileobj(source, copy)
    return str(file)
