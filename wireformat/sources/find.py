"""`find_sources`: turns what a caller passes as messages into a list of sources, in order.

The order of sources is that of the positions in their messages.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.scan.message_batches import check_messages
from ..errors import OptionError, OrderError
from ..formats.base import Format
from ..lsn import lsn_text, unsigned
from ..options.checks import in_home, shown, texts
from .arrow_data import IterableSource, arrow_source
from .files import file_source
from .ordered import ordered_sources
from .source import Source

_DIGITS = re.compile(r"(\d+)")


class Sources(tuple[Source, ...]):
    """Sources that were found before."""


def find_sources(
    messages: Any, format: Format, column: str | None = None, order_by: Sequence[str] | None = None
) -> list[Source]:
    """Returns the sources of messages, in order.

    messages   a path, a pattern such as `captures/*.parquet`, a folder (its files), or a list of paths; Arrow data (see
               `arrow_source`); an iterable of bytes-like objects. Files come in the natural order of their names:
               `9.bin` before `10.bin`. A list of paths keeps its order
    column     the column of Parquet files and Arrow tables that has the messages
    order_by   columns that order the messages of all sources, in place of the order of files and rows

    Raises OptionError, OSError for a file that cannot be read, and TypeError.
    """
    if isinstance(messages, Sources):
        return [*messages]
    if column is not None and not isinstance(column, str):
        raise OptionError(f"option column: expected the name of a column, got {shown(column)}")
    paths = _paths(messages)
    if order_by is not None:
        return ordered_sources([messages] if paths is None else paths, column, texts("order_by", order_by))
    if paths is not None:
        return [file_source(path, str(path), format, column) for path in paths]
    found = arrow_source(messages, column)
    if found is not None:
        return [found]
    is_bytes = isinstance(messages, (bytes, bytearray, memoryview))
    if is_bytes or hasattr(messages, "read") or not isinstance(messages, Iterable):  # a file would be read by lines
        raise TypeError(f"messages: expected paths, Arrow data or an iterable of bytes, got {type(messages).__name__}")
    check_messages(messages)
    if column is not None:
        raise OptionError("option column: an iterable of bytes has no columns")
    return [IterableSource(messages)]


def paths_of(messages: Any) -> list[Path]:
    """Returns the files that a path, a pattern, a folder or a list of paths names, in order; raises OptionError."""
    found = _paths(messages)
    if found is None:
        raise OptionError(
            f"option path: expected a path, a pattern or a list of at least one path, got {shown(messages)}"
        )
    return found


def _paths(messages: Any) -> list[Path] | None:
    """Returns the files that the messages name; None if they name none."""
    if isinstance(messages, (str, os.PathLike)):
        return _expanded(in_home(os.fspath(messages)))
    if (
        isinstance(messages, (list, tuple))
        and messages
        and all(isinstance(one, (str, os.PathLike)) for one in messages)
    ):
        return [path for one in messages for path in _expanded(in_home(os.fspath(one)))]
    return None


def _expanded(text: str) -> list[Path]:
    """Returns a file, the files of a folder, or those that match a pattern, in natural order."""
    if not text or "\0" in text:
        raise OptionError(f"expected a path, a folder or a pattern, got {shown(text)}")
    path = Path(text)
    if path.is_dir():
        found = [one for one in path.iterdir() if _is_taken(one) and not one.name.startswith((".", "_"))]
    elif path.exists():
        return [path]
    elif "://" in text:
        raise OptionError(f"{text} is a URI, not a path: pass a dataset, such as pyarrow.dataset.dataset({text!r})")
    elif glob.has_magic(text):
        found = [one for one in map(Path, glob.glob(text, recursive=True)) if _is_taken(one)]  # noqa: PTH207 - of any root
    else:
        return [path]
    if not found and path.is_dir():
        deeper = f"; for those of its folders, give a pattern such as {path / '*' / '*.parquet'}"
        has_folders = any(one.is_dir() for one in path.iterdir())
        raise OptionError(
            f"{text}: the folder has no files; names that begin with . or _ do not count{deeper if has_folders else ''}"
        )
    if not found:
        raise OptionError(f"no file matches {text}: expected a path, a folder, or a pattern such as captures/*.parquet")
    return sorted(found, key=natural_order)


def _is_taken(path: Path) -> bool:
    """Whether it is a file. So is a link to one that is missing: an error says so, which is better than to lose it."""
    return path.is_file() or not path.exists()


def natural_order(path: Path) -> list[list[tuple[int, int, str]]]:
    """Returns a sort key in which numbers within names are compared as numbers. `a` and `a.b` come before `a2.b`."""
    return [
        [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(name)]
        for name in re.split(r"[./]", path.as_posix())
    ]


class SourceBegin(NamedTuple):
    """Where a source begins: the position of its first transaction that has one.

    column    csn or commit_lsn
    value     unsigned
    message   index of its BEGIN
    """

    column: str
    value: int
    message: int


def _begin_of(begins: pa.RecordBatch) -> SourceBegin | None:
    """Returns where BEGIN records begin; None if none has a position."""
    for name in ("csn", "commit_lsn"):
        values = begins[name].drop_null()
        if len(values):
            return SourceBegin(name, unsigned(values[0].as_py()), begins["message"][0].as_py())
    return None


class NamedBegin(NamedTuple):
    """Where a source begins.

    first   index of its first message
    """

    source: str
    first: int
    begin: SourceBegin


class SourceOrder:
    """Checks that sources come in the order of their positions: each begins at or after the beginning of the last one.

    `first` and `last` are the beginnings of the first and the last source with positions.

    Raises OrderError, which names both.
    """

    COLUMNS = ("kind", "message", "csn", "commit_lsn")

    def __init__(self, format: str) -> None:
        self._format = format
        self.first: NamedBegin | None = None
        self.last: NamedBegin | None = None
        self._waiting: list[tuple[int, str]] = []
        """The sources whose beginning has not been found: the index of the first message of each, and its name."""

    def add(self, first: int, source: str) -> None:
        """Says of which source the messages are from an index on."""
        self._waiting.append((first, source))

    def take(self, batch: pa.RecordBatch) -> None:
        """Looks at the next rows. They may be of messages that came long ago, if options held them back."""
        if not self._waiting:
            return
        begins = batch.select(self.COLUMNS).filter(pc.equal(batch["kind"], "BEGIN"))
        if not len(begins):
            return
        firsts = [*(first for first, _ in self._waiting), np.iinfo(np.int64).max]
        bounds = np.searchsorted(np.asarray(begins["message"]), firsts).tolist()
        waiting, self._waiting = self._waiting, []
        for (start, stop), (first, source) in zip(pairwise(bounds), waiting, strict=True):
            begin = _begin_of(begins.slice(start, stop - start)) if start < stop else None
            if begin is not None:
                self.take_begin(NamedBegin(source, first, begin))
            elif stop == len(begins):  # else a BEGIN of a later source has come
                self._waiting.append((first, source))

    def take_begin(self, named: NamedBegin) -> None:
        """Looks at where the next source begins."""
        if self.last is None:
            self.first = self.last = named
            return
        before, _, earlier = self.last
        source, _, begin = named
        if source == before:
            return
        self.go_on(named)
        if earlier.column != begin.column or earlier.value <= begin.value:
            return
        text = str if begin.column == "csn" else lsn_text
        raise OrderError(
            f"a source that begins at or after {before}, at {begin.column} {text(earlier.value)}",
            f"{source}, which begins at {text(begin.value)}",
            format=self._format,
            message=begin.message,
            state="between sources",
            open="",
            hint="give the files in the order of the stream, or name the columns that order the messages with order_by",
        )

    def go_on(self, named: NamedBegin) -> None:
        """Goes on after a source whose beginning was looked at elsewhere, unless this is one more part of the last."""
        if self.last is None or named.source != self.last.source:
            self.last = named
