"""Row changes in which nothing could be read: a wrong format, seen when the whole input has ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from ..errors import BadRows, DecodeError, OrderError, add_hint, counted
from ..formats.guess import Guess, guess_format
from ..formats.row import HEAD_BYTES
from ..options import ReadOptions
from ..options.table_names import suggestion, written
from ..stream.judged import UNKNOWN, Judged, wrong_format
from .row_changes import RowSource
from .schemas import change_schema, format_of

Item = TypeVar("Item", pa.RecordBatch, RowSource, Any)

UNREAD = ("UNKNOWN", "CORRUPT")
"""Kinds of rows of which nothing but the bytes is known."""

HEADS = 100
"""The beginnings of this many of them are kept, to guess the format."""


def judged_batches(
    source: Any, messages: Any, schema: pa.Schema, format: str, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """The batches of an engine, judged as `wireformat.stream.judged.judged_events` judges events."""
    if options.mode != "FAILFAST":
        yield from source.batches(messages, schema)
        return
    judged = Judged(messages, format, options)
    wider = schema if "kind" in schema.names else change_schema([*schema.names, "kind"]).with_metadata(schema.metadata)
    is_read, unknown = False, 0
    try:
        for batch in source.batches(judged.messages, wider):
            yield batch if wider is schema else batch.select(schema.names)
            is_read = is_read or not _all_are(batch, (UNKNOWN,))
            unknown += batch.num_rows
        if not is_read:
            judged.check_unknown(unknown)
    except DecodeError as error:
        raise judged.named(error) from None


def without_unread(rows: Any) -> Any:
    """Returns a record batch, or rows as a scan noted them, without those that could not be read."""
    import numpy as np
    import pyarrow.compute as pc  # not loaded by programs that only decode

    is_batch = isinstance(rows, pa.RecordBatch)
    kinds = pa.array(UNREAD)
    if not pc.any(pc.is_in(rows["kind"] if is_batch else rows.other_records["kind"], kinds)).as_py():
        return rows
    batch = rows if is_batch else rows.batch_of(np.arange(len(rows.kind_codes)))
    return batch.filter(pc.invert(pc.is_in(batch["kind"], kinds)))


class ReadSummary(NamedTuple):
    """What is known of whether some rows could be read.

    is_read    one of them could
    rows       how many could not, where none could
    messages   about how many messages these are of
    heads      the beginnings of some of those
    """

    is_read: bool = False
    rows: int = 0
    messages: int = 0
    heads: tuple[bytes, ...] = ()

    def and_of(self, batch: pa.RecordBatch) -> ReadSummary:
        """The same of these rows and those of a batch."""
        if self.is_read or not batch.num_rows:
            return self
        if not _all_are(batch, UNREAD):
            return ReadSummary(is_read=True)
        names = batch.schema.names
        raws = batch["raw"].slice(0, HEADS - len(self.heads)) if "raw" in names else []
        heads = tuple(bytes(memoryview(raw.as_buffer())[:HEAD_BYTES]) for raw in raws if raw.is_valid)
        messages = len(set(batch["message"].to_pylist())) if "message" in names else batch.num_rows
        return self.and_these(ReadSummary(False, batch.num_rows, messages, heads))

    def and_of_source(self, source: RowSource) -> ReadSummary:
        """The same of these rows and those of a source."""
        has_changes = len(source.other_rows) < len(source.kind_codes) or source.stepped is not None
        return ReadSummary(is_read=True) if has_changes else self.and_of(source.other_records)

    def and_these(self, other: ReadSummary) -> ReadSummary:
        """The same of these rows and others."""
        if self.is_read or other.is_read:
            return ReadSummary(is_read=True)
        heads = (self.heads + other.heads)[:HEADS]
        return ReadSummary(False, self.rows + other.rows, self.messages + other.messages, heads)

    def hint(self) -> str | None:
        """What the bytes look like, as the hint of an error; None where something was read."""
        if self.is_read or not self.heads:
            return None
        guess = guess_format(self.heads)
        return f"the messages look like {guess}" if guess.candidates else None

    def other_format(self, format: str) -> Guess | None:
        """What the messages look like if there are several, none could be read, and it is another format."""
        if self.is_read or self.messages < 2:
            return None
        guess = guess_format(self.heads)
        return guess if guess.candidates and format not in guess.candidates else None

    def check_format(self, format: str, mode: str) -> None:
        """Raises DecodeError in FAILFAST mode if nothing could be read, and the messages look like another format."""
        guess = self.other_format(format) if mode == "FAILFAST" else None
        if guess is not None:
            raise wrong_format(format, "no record that could be read", guess)

    def check(self, format: str | None) -> None:
        """Raises BadRows where there are rows of several messages and none could be read.

        format   that they were read as, if it is known
        """
        if self.is_read or self.messages < 2:
            return
        guess = guess_format(self.heads)
        source = "" if format is None else f" of {format}"
        why = f"{guess.reason}; " if self.heads else ""
        raise BadRows(
            f"rows{source} that could be read",
            f"{counted(self.rows, 'row')}, all of them {' or '.join(UNREAD)}",
            hint=f"{why}decode the messages with the format that they have",
        )


class TablesSeen:
    """The tables of an input, until the wanted one is found: for the error that says that the input does not have it.

    wanted   schema and name of the table
    """

    def __init__(self, wanted: tuple[str, str]) -> None:
        self._wanted = wanted
        self._names: set[tuple[str, str]] = set()

    def noted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the batches, and notes the tables of their rows."""
        import pyarrow.compute as pc  # not loaded by programs that only decode

        columns = ["table_schema", "table_name"]
        for batch in batches:
            is_wanted = (pc.equal(batch[name], text) for name, text in zip(columns, self._wanted, strict=True))
            if self._wanted in self._names or pc.any(pc.and_(*is_wanted)).as_py():
                self._names.add(self._wanted)
            else:
                named = pa.Table.from_batches([batch.select(columns)]).group_by(columns).aggregate([]).drop_null()
                self._names.update(zip(*(named[name].to_pylist() for name in columns), strict=True))
            yield batch

    def error(self) -> BadRows:
        """Returns the error, with the tables that the wrong name may mean."""
        return no_such_table(written(self._wanted), {*map(written, self._names)})


def no_such_table(wanted: str, there: Collection[str]) -> BadRows:
    """Returns the error for an input without changes of a table; both are names as `written` returns them."""
    hint = f"the input has no changes of {wanted}{suggestion(wanted, there)}"
    return BadRows("changes of this table, or a schema", "none", table=wanted, hint=hint)


@contextmanager
def judged_rows(rows: Iterable[Item]) -> Iterator[Iterator[Item]]:
    """All row changes of an input, for who puts them into transactions inside of the block.

    rows   record batches, or sources of rows

    Raises BadRows at its end where nothing could be read; an OrderError names the format that the messages look like.
    """
    seen, format = ReadSummary(), None

    def noted() -> Iterator[Item]:
        nonlocal seen, format
        for item in rows:
            if not isinstance(item, pa.RecordBatch):
                seen, format = seen.and_of_source(item), format or format_of([item.other_records.schema])
            elif item.schema.names.count("kind") == 1:  # else the one who takes them says what is wrong
                seen, format = seen.and_of(item), format or format_of([item.schema])
            yield item

    try:
        yield noted()
    except OrderError as error:
        add_hint(error, seen.hint())
        raise
    seen.check(format)


def _all_are(batch: pa.RecordBatch, kinds: tuple[str, ...]) -> bool:
    """Whether all rows are of these kinds; the first row tells of most batches, and is cheap to look at."""
    if batch.num_rows and batch["kind"][0].as_py() not in kinds:
        return False
    return all(kind in kinds for kind in batch["kind"].to_pylist())
