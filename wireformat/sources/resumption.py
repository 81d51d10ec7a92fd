"""Continuing after a position: what the input must contain, and the relations that are known at the next position."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Array
from ..arrow.codes import codes_of_values, combined_codes, grouped
from ..errors import DecodeError, OptionError, OrderError, add_hint
from ..events import Event, Relation, StreamAbort, StreamCommit, StreamPrepare, StreamStart, StreamStop
from ..formats.pgoutput.relation_lists import relation_lists
from ..formats.pgoutput.relations import Relations
from ..formats.record_facts import aborts_whole
from ..lsn import unsigned
from ..stream.capture_position import CapturePosition, OpenTransaction, outside_blocks
from ..stream.controls import CONTROL_KINDS, Control, commit_lsn_of
from ..stream.positions import Position

_WATCHED = (
    "BEGIN",
    "STREAM_START",
    "PREPARE",
    "STREAM_PREPARE",
    "COMMIT_PREPARED",
    "ROLLBACK_PREPARED",
    "STREAM_ABORT",
    "STREAM_COMMIT",
)
_HINT = (
    "begin the input at or before the first message of that transaction; if that message begins within an earlier one, "
    "at the message in which the earlier one begins"
)


class Resumption:
    """Checks that an input reaches back to the beginning of what was open at a position.

    Raises OrderError where it does not.
    """

    def __init__(self, after: CapturePosition | None) -> None:
        delivered = Position() if after is None else after.delivered
        if after is not None and after.open and delivered.transactions and delivered.lsn is delivered.csn is None:
            raise OrderError(
                "a position of transactions with commit LSNs",
                f"one without, at which a {after.open[0]} was open",
                format=after.format,
                state="after a position",
                open="",
                hint="rows that were handed out before cannot be recognised; cut the stream where no transaction is "
                "open, or read it again as a whole without `after`",
            )
        self._after = after
        self._delivered = None if after is None else after.delivered
        open = () if after is None else after.open
        self._plain = next((one for one in open if one.stage == "plain"), None)
        self._streamed = {one.xid: one for one in open if one.stage in ("block", "streamed")}
        self._prepared = {one.gid: one for one in open if one.stage == "prepared"}
        self._prepared_ids = {(one.gid, one.xid) for one in self._prepared.values()}
        self._ended_before: dict[int | None, dict[str, Any]] = {}
        """The STREAM_PREPARE of streamed transactions whose blocks have not come: of an earlier attempt, which was
        rolled back before the position, if the blocks come later."""

    @property
    def unseen(self) -> tuple[OpenTransaction, ...]:
        """What was open at the position and has not been seen again in this input."""
        plain = () if self._plain is None else (self._plain,)
        return (*plain, *self._streamed.values(), *self._prepared.values())

    def take(self, batch: pa.RecordBatch) -> None:
        """Looks at the next rows of the input."""
        if not self.unseen:
            return
        for index in pc.indices_nonzero(pc.is_in(batch["kind"], pa.array(_WATCHED))).to_pylist():
            self._look({name: batch[name][index].as_py() for name in batch.schema.names})

    def take_controls(self, controls: Iterable[Control]) -> None:
        """Does what `take` does, with control records."""
        for control in controls:
            if self.unseen and control.kind in _WATCHED:
                fields = control._asdict()
                names = [name for name in ("gid", "subxid") if fields[name] is not None]
                detail = {name: str(fields[name]) for name in names}
                if control.first_segment is False:
                    detail["first_segment"] = "false"
                self._look({**fields, "detail": detail, "message": None, "record": None})

    def finish(self) -> None:
        """Raises OrderError if the input has ended without the blocks of a transaction that it ends."""
        for row in self._ended_before.values():
            self._check_blocks(row)

    def _check_blocks(self, row: dict[str, Any]) -> None:
        if _xid_of(row) in self._streamed:
            ids = f"xid {_xid_of(row)} gid {dict(row['detail'] or ()).get('gid')!r}"
            raise self._wrong("the blocks of this transaction before its end", f"STREAM_PREPARE {ids}", row, _HINT)

    def hint(self) -> str | None:
        """Returns what an OrderError of this input should add."""
        if not self.unseen:
            return None
        return f"open at the position: {', '.join(map(str, self.unseen))}; {_HINT}"

    def _look(self, row: dict[str, Any]) -> None:
        kind, detail = row["kind"], dict(row["detail"] or ())
        xid = _xid_of(row)
        gid = detail.get("gid")
        if kind == "STREAM_PREPARE" and xid in self._streamed and not self._is_covered(row):
            self._ended_before[xid] = row
        if kind == "COMMIT_PREPARED" and not self._is_covered(row):
            for before in self._ended_before.values():
                if dict(before["detail"] or ()).get("gid") == gid:
                    self._check_blocks(before)
        if kind == "STREAM_START":
            if detail.get("first_segment") != "false":  # else of an earlier attempt, or the first block is missing
                self._streamed.pop(xid, None)
        elif kind == "STREAM_ABORT":
            if aborts_whole(xid, _subxid(detail)):
                self._streamed.pop(xid, None)
        elif kind == "BEGIN":
            self._streamed.pop(xid, None)  # sent again, now as a plain transaction
            self._begin(row, xid, gid)
        elif kind == "COMMIT_PREPARED" and gid in self._prepared and not self._is_covered(row):
            raise self._error(self._prepared[gid], "its COMMIT PREPARED", row)
        else:
            self._prepared.pop(gid, None)
        if kind in ("STREAM_COMMIT", "COMMIT_PREPARED") and self._plain is not None and not self._is_covered(row):
            raise self._error(self._plain, f"the {kind} of a later one", row)

    def _begin(self, row: dict[str, Any], xid: int | None, gid: str | None) -> None:
        if self._plain is None or self._delivered is None:
            return
        lsn, csn = _numbers(row)
        pairs = ((xid, self._plain.xid), (csn, self._plain.csn), (lsn, self._plain.commit_lsn))
        are_same = [left == right for left, right in pairs if left is not None and right is not None]
        if are_same and all(are_same):
            self._plain = None
            return
        if any(xid == prepared_xid if gid is None else gid == own for own, prepared_xid in self._prepared_ids):
            return
        if self._delivered.covers(lsn, csn) or _is_earlier(lsn, csn, self._plain):
            return
        if are_same:
            raise self._error(self._plain, "the BEGIN of a later one", row)
        self._plain = None

    def _is_covered(self, row: dict[str, Any]) -> bool:
        return self._delivered is not None and self._delivered.covers(*_numbers(row))

    def _error(self, open: OpenTransaction, got: str, row: dict[str, Any]) -> OrderError:
        return self._wrong(f"the beginning of the {open}, which was open at the position", got, row, _HINT)

    def _wrong(self, expected: str, got: str, row: dict[str, Any], hint: str | None) -> OrderError:
        return OrderError(
            expected,
            got,
            format=None if self._after is None else self._after.format,
            message=row["message"],
            record=row["record"],
            state="after a position",
            open="",
            hint=hint,
        )


class OpenBefore:
    """What was open at a position and has not come again, for questions that do not need it to come."""

    def __init__(self, after: CapturePosition | None) -> None:
        self._resumption: Resumption | None = None
        if after is not None and after.open:
            with suppress(OrderError):
                self._resumption = Resumption(after)

    def take(self, batch: pa.RecordBatch) -> None:
        """Looks at the next rows of the input."""
        if self._resumption is not None:
            with suppress(OrderError):
                self._resumption.take(batch)

    def take_controls(self, controls: Iterable[Control]) -> None:
        """Does what `take` does, with control records."""
        if self._resumption is not None:
            with suppress(OrderError):
                self._resumption.take_controls(controls)

    def hint(self) -> str | None:
        """Returns what an error of the next rows should add."""
        return None if self._resumption is None else self._resumption.hint()


def _xid_of(row: dict[str, Any]) -> int | None:
    return None if row["xid"] is None else unsigned(row["xid"])


def _is_earlier(lsn: int | None, csn: int | None, open: OpenTransaction) -> bool:
    """Whether a transaction comes before an open one, by the CSNs if both have one, or else by the LSNs."""
    if csn is not None and open.csn is not None:
        return csn < open.csn
    return lsn is not None and open.commit_lsn is not None and lsn < open.commit_lsn


def _numbers(row: dict[str, Any]) -> tuple[int | None, int | None]:
    """Returns the commit LSN, or else the LSN, and the csn."""
    lsn = row["lsn"] if row["commit_lsn"] is None else row["commit_lsn"]
    return None if lsn is None else unsigned(lsn), None if row["csn"] is None else unsigned(row["csn"])


MOST_LATER_ROWS = 1 << 15
"""How many rows are kept before they are read."""


class KnownRelations:
    """The relations of pgoutput that were described before the oldest message that is still needed.

    known       that were described before, in the order of time
    relations   what is known of them in transactions; None: they were described outside of streamed ones
    adopted     xids of streamed transactions that end after the rows, of which all get what they described

    Few positions are looked at. Rows are kept until one is, or until there are many.
    """

    _KINDS = ("RELATION", "STREAM_START", "STREAM_STOP", "STREAM_ABORT", "STREAM_COMMIT", "STREAM_PREPARE")

    def __init__(
        self,
        known: Iterable[Relation] = (),
        relations: Relations | None = None,
        adopted: frozenset[int | None] = frozenset(),
    ) -> None:
        given = [*known]
        newest = {one.relation_id: one for one in given}
        self._known = _Known(Relations(), {}).after(given) if relations is None else _Known(relations, newest)
        self._adopted = adopted
        self._later: list[pa.RecordBatch | list[tuple[int, Event]]] = []
        """Rows after `_known`, or their events with their messages. The list only grows: positions share it."""
        self._rows = 0
        self._described_in: set[int] = set()
        """The xids of streamed transactions that may have described relations."""

    def copy(self) -> Relations:
        """Returns the relations, for a decoder."""
        return self._known.relations.copy()

    def take(self, batch: pa.RecordBatch) -> None:
        """Learns from the next rows of the input."""
        rows = _rows_of(batch, self._KINDS)
        if not len(rows):  # as in each batch of a format that does not describe its tables
            return
        if not any(map(len, self._later)):
            self._described_in = {xid for xid, _, _ in self._known.relations.described_in_blocks()}
        rows = rows.filter(pa.array(~_describe_nothing(rows, self._described_in)))
        if len(rows):
            starts = pc.equal(rows["kind"], "STREAM_START")
            self._described_in.update(rows["xid"].filter(starts).drop_null().to_pylist())
            self._later.append(rows)
            self._rows += len(rows)

    def before(self, message: int | None) -> Callable[[], tuple[Relation, ...]]:
        """Returns what finds the relations that were known before a message, or now, also later.

        Earlier messages must not be asked for any more.
        """
        if self._rows >= MOST_LATER_ROWS:
            self._read(self._known, self._later, len(self._later), message)
        return partial(self._read, self._known, self._later, len(self._later), message)

    def _read(
        self,
        known: _Known,
        later: list[pa.RecordBatch | list[tuple[int, Event]]],
        count: int,
        message: int | None,
    ) -> tuple[Relation, ...]:
        events = [found for rows in later[:count] for found in (rows if isinstance(rows, list) else _events_in(rows))]
        end = next(
            (at for at, (index, _) in enumerate(events) if message is not None and index >= message), len(events)
        )
        reached = known.after([event for _, event in events[:end]])
        if later is self._later:
            self._known, self._later = reached, [events[end:], *later[count:]]
            self._rows = sum(len(rows) for rows in later[count:])
        adopted = {event.xid for _, event in events[end:] if isinstance(event, ADOPTING)}
        return outside_blocks(reached.found_before(adopted | self._adopted))


ADOPTING = StreamCommit, StreamPrepare
"""With these, all transactions get what the blocks of a transaction described."""


class _Known:
    """Relations at some time, and the newest one of each number that was described. It is never changed."""

    def __init__(self, relations: Relations, newest: dict[int, Relation]) -> None:
        self.relations = relations
        self._newest = newest

    def after(self, events: Sequence[Event]) -> _Known:
        """Returns what is known after events."""
        if not events:
            return self
        relations, newest = self.relations.copy(), {**self._newest}
        for event in events:
            relations.take(event)
            if isinstance(event, Relation):
                newest[event.relation_id] = event
        return _Known(relations, newest)

    @cached_property
    def found(self) -> tuple[Relation, ...]:
        """The relations. A later block of a transaction whose first one is not needed any more also needs its own."""
        return tuple(self.relations.find(number) or said for number, said in self._newest.items())

    def found_before(self, adopted: Collection[int | None]) -> tuple[Relation, ...]:
        """Returns the relations where streamed transactions, of these xids, end later: theirs are then those of all."""
        if not adopted:
            return self.found
        pairs = zip(self.found, self._newest.values(), strict=True)
        return tuple(said if said.xid in adopted else known for known, said in pairs)


_EVENT_COLUMNS = ("message", "kind", "xid", "table_schema", "table_name", "detail")


def relations_in(batch: pa.RecordBatch) -> Iterator[tuple[int, Relation]]:
    """Yields the relations that rows describe, each with the message that describes it."""
    for message, event in _events_in(_rows_of(batch, ("RELATION",))):
        assert isinstance(event, Relation)
        yield message, event


def _rows_of(batch: pa.RecordBatch, kinds: Sequence[str]) -> pa.RecordBatch:
    """Returns what `_events_in` needs of the rows of some kinds."""
    chosen = pc.indices_nonzero(pc.is_in(batch["kind"], pa.array(kinds)))
    needed = batch.select(_EVENT_COLUMNS)
    return needed.take(chosen) if len(chosen) else needed.slice(0, 0)


def _events_in(rows: pa.RecordBatch) -> Iterator[tuple[int, Event]]:
    """Yields the events of rows with their messages.

    Rows that say the same have one event: servers often say so again.
    """
    if not len(rows):
        return
    said = (rows[name] for name in _EVENT_COLUMNS if name != "message")
    firsts, indices = grouped(combined_codes([codes_of_values(pa.chunked_array([column])) for column in said]))
    events = [[*_events(row)] for row in rows.take(pa.array(firsts)).to_pylist()]
    for message, index in zip(rows["message"].to_pylist(), indices.tolist(), strict=True):
        yield from ((message, event) for event in events[index])


_AFTER_BLOCKS = ("STREAM_STOP", "STREAM_ABORT", "STREAM_COMMIT", "STREAM_PREPARE")


def _describe_nothing(rows: pa.RecordBatch, described_in: Collection[int]) -> Array:
    """Returns bool[n]: whether the row belongs to a block without relations, or ends a transaction without them.

    rows           RELATION and the records of blocks
    described_in   the xids of transactions that may have described relations before
    """
    kinds, xids = rows["kind"], np.asarray(rows["xid"].fill_null(0))
    are_ends = np.asarray(pc.is_in(kinds, pa.array(_AFTER_BLOCKS)))
    are_starts, are_stops = (np.asarray(pc.equal(kinds, kind)) for kind in ("STREAM_START", "STREAM_STOP"))
    are_outside = np.append(False, are_ends[:-1])  # no block is open before these rows
    found = are_outside & are_starts & np.append(are_stops[1:], False)
    found[1:] |= found[:-1]
    kept = np.isin(xids, [*described_in, *xids[are_starts & ~found]])
    return found | (are_outside & are_ends & ~are_stops & ~kept)


def _events(row: Mapping[str, Any]) -> Iterator[Event]:
    detail = dict(row["detail"] or ())
    xid = None if row["xid"] is None else unsigned(row["xid"])
    kind = row["kind"]
    if kind == "RELATION":
        yield Relation(
            relation_id=int(detail["relation_id"]),
            table_schema=row["table_schema"],
            table_name=row["table_name"],
            replica_identity=detail["replica_identity"],
            xid=xid,
            **relation_lists(detail),
        )
    elif kind == "STREAM_START":
        yield StreamStart(xid=xid, first_segment=detail.get("first_segment") == "true")
    elif kind == "STREAM_STOP":
        yield StreamStop(xid=xid)
    elif kind == "STREAM_COMMIT":
        yield StreamCommit(xid=xid)
    elif kind == "STREAM_PREPARE":
        yield StreamPrepare(xid=xid, gid=detail.get("gid", ""))
    elif aborts_whole(xid, _subxid(detail)):
        yield StreamAbort(xid=xid, subxid=xid)


def _subxid(detail: Mapping[str, str]) -> int | None:
    return int(detail["subxid"]) if "subxid" in detail else None


def controls_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Control]:
    """Yields the control records among rows, without what only their `detail` has."""
    names = ("kind", "lsn", "xid", "csn", "commit_lsn")
    for batch in batches:
        for row in batch.select(names).filter(pc.is_in(batch["kind"], pa.array(CONTROL_KINDS))).to_pylist():
            lsn, xid, csn, commit_lsn = (None if row[name] is None else unsigned(row[name]) for name in names[1:])
            yield Control(row["kind"], lsn, xid, csn, commit_lsn)


_WITH_COMMIT_LSN = ("BEGIN", "COMMIT", "STREAM_COMMIT", "COMMIT_PREPARED")


def begins_before(position: CapturePosition, controls: Iterable[Control]) -> bool:
    """Whether an input begins with transactions that have been handed out at a position.

    controls   of the input, from its beginning
    """
    open_xids = {one.xid for one in position.open}
    for index, control in enumerate(controls):
        if not index and control.kind in ("BEGIN", "STREAM_START") and control.xid in open_xids:
            return False  # the oldest message that the position needs
        if control.kind in _WITH_COMMIT_LSN:
            return position.delivered.covers(commit_lsn_of(control), control.csn)
    return False


@contextmanager
def naming_overlaps(
    after: CapturePosition | None, lake: CapturePosition | None, controls: Callable[[], Iterable[Control]]
) -> Iterator[None]:
    """Adds a hint to errors of messages that were read with the relations of a lake that has them already.

    The arguments are those of `going_on`.
    """
    try:
        yield
    except DecodeError as error:
        if after is None and lake is not None and lake.relations and begins_before(lake, controls()):
            add_hint(
                error,
                "the lake has the first transactions of this input already: pass as `after` the position where the "
                "input begins, or messages that begin where the lake ends",
            )
        raise


def going_on(
    after: CapturePosition | None,
    lake: CapturePosition | None,
    format: str,
    controls: Callable[[], Iterable[Control]] | None = None,
) -> CapturePosition | None:
    """Returns the position after which a stream that is written to a lake continues; raises OptionError.

    after      the position that the caller gives
    lake       how far the lake goes
    controls   returns the control records of the input; None if it begins at `after` anyway
    """
    if lake is None or (after is not None and lake.to_json() == after.to_json()):
        return after
    if after is not None and after.delivered.is_ahead(lake.delivered):
        raise OptionError(
            "option after: the position is after the end of the lake, which would lack the transactions between: "
            "pass after=wireformat.lake.position(folder)"
        )
    if lake.delivered.lsn is None and lake.delivered.transactions:
        raise OptionError(
            f"option after: the lake has rows of this stream, and without LSNs, {format} does not show which "
            "messages come again: pass after=wireformat.lake.position(folder), and messages that begin there"
        )
    if after is None or after.relations == lake.relations:
        return lake
    if controls is not None and not begins_before(lake, controls()):
        return lake
    return lake._replace(relations_of_input=after.relations)  # a table may have been altered between them
