"""Continuing after a position: what the input must contain, and what was open there and has not come again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import unsigned_values
from ..arrow.noted.relation_events import subxid_of
from ..errors import BadRows, DecodeError, OptionError, OrderError, add_hint
from ..events import aborts_whole
from ..lsn import signed, unsigned
from ..stream.capture_position import CapturePosition, OpenTransaction
from ..stream.controls import CONTROL_KINDS, Control, commit_lsn_of, may_be_same
from ..stream.positions import Position

_OF_PREPARED = ("PREPARE", "STREAM_PREPARE", "COMMIT_PREPARED", "ROLLBACK_PREPARED")
_WATCHED = ("BEGIN", "STREAM_START", "STREAM_ABORT", "STREAM_COMMIT", *_OF_PREPARED)
_COLUMNS = ("kind", "lsn", "xid", "csn", "commit_lsn", "detail", "message", "record")
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
                hint="rows that were handed out before cannot be recognised; read the stream again as a whole, without "
                "`after` and into a new lake, and cut it where no transaction is open",
            )
        self._after = after
        self._delivered = None if after is None else after.delivered
        open = () if after is None else after.open
        plain = (one for one in open if one.stage == "plain")
        self._plain = next((one for one in plain if not delivered.covers(one.commit_lsn, one.csn)), None)
        """The one that must come: not if it was open at the position because it was being sent again."""
        self._streamed = {one.xid: one for one in open if one.stage in ("block", "streamed")}
        self._prepared = {one.gid: one for one in open if one.stage == "prepared"}
        self._prepared_ids = {(one.gid, one.xid) for one in self._prepared.values()}
        self._unbegun = {(one.gid, one.xid) for one in self._prepared.values() if one.changes}
        """The prepared ones whose beginning has not come. PostgreSQL 18 sends no BEGIN for an empty transaction."""
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
        while self.unseen:
            plain = self._plain
            for index in pc.indices_nonzero(self._are_watched(batch)).to_pylist():
                self._look({name: batch[name][index].as_py() for name in _COLUMNS})
                if self._plain is not plain:  # the rest is watched for less
                    batch = batch.slice(index + 1)
                    break
            else:
                return

    def _are_watched(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Returns which rows may be those that are awaited, or show that these do not come."""
        kinds = batch["kind"]
        watched = pc.is_in(kinds, pa.array(_WATCHED))
        if self._plain is not None:
            return watched if self._unbegun else pc.and_not(watched, self._begin_delivered(batch, self._plain))
        # what is awaited may never come: it may have been rolled back
        awaited = _has_xid(batch, (None, *self._streamed, *(xid for _, xid in self._unbegun)))
        return pc.and_(watched, pc.or_(awaited, pc.is_in(kinds, pa.array(_OF_PREPARED))))

    def _begin_delivered(self, batch: pa.RecordBatch, plain: OpenTransaction) -> pa.BooleanArray:
        """Returns which rows begin transactions that the position covers, and that are not awaited."""
        delivered = self._delivered
        if delivered is None or delivered.lsn is None:
            return pa.array(np.zeros(len(batch), bool))
        csns, has_csn = unsigned_values(batch["csn"])
        lsns, has_lsn = unsigned_values(pc.coalesce(batch["commit_lsn"], batch["lsn"]))
        is_covered = has_lsn & (lsns <= np.uint64(delivered.lsn))  # see Position.covers
        is_covered &= ~has_csn | ((delivered.csn is not None) & (csns <= np.uint64(delivered.csn or 0)))
        for numbers, own in ((csns, plain.csn), (lsns, plain.commit_lsn)):
            is_covered &= own is None or numbers != np.uint64(own)
        awaited = _has_xid(batch, (*self._streamed, *([] if plain.xid is None else [plain.xid])))
        return pc.and_not(pc.and_(pc.equal(batch["kind"], "BEGIN"), pa.array(is_covered)), awaited)

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
            raise self._wrong("the blocks of this transaction before its end", f"STREAM_PREPARE {ids}", row)

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
        if kind == "BEGIN" or (kind == "STREAM_START" and detail.get("first_segment") != "false"):
            # A later block is of an earlier attempt, or the first block is missing.
            self._streamed.pop(xid, None)  # sent again, maybe in the other form: plain or streamed
            self._unbegun = {
                (own, of) for own, of in self._unbegun if (xid not in (None, of) if gid is None else gid != own)
            }
            if kind == "BEGIN":
                self._begin(row, xid, gid)
            elif self._plain is not None and self._plain.xid == xid:
                self._plain = None
        elif kind == "STREAM_ABORT":
            if aborts_whole(xid, subxid_of(detail)):
                self._streamed.pop(xid, None)
        elif gid in self._prepared:
            one = self._prepared[gid]
            if kind == "COMMIT_PREPARED":
                if not self._is_covered(row):
                    raise self._error(one, "its COMMIT PREPARED", row)
            elif may_be_same(xid, one.xid):  # else an earlier transaction had the same gid
                if kind == "ROLLBACK_PREPARED" or (gid, one.xid) not in self._unbegun:
                    del self._prepared[gid]
                elif kind == "PREPARE":  # a STREAM_PREPARE may be of an earlier attempt
                    raise self._error(one, "its PREPARE", row)
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
            raise self._error(self._plain, "the BEGIN of another one", row)
        self._plain = None

    def _is_covered(self, row: dict[str, Any]) -> bool:
        return self._delivered is not None and self._delivered.covers(*_numbers(row))

    def _error(self, open: OpenTransaction, got: str, row: dict[str, Any]) -> OrderError:
        return self._wrong(f"the beginning of the {open}, which was open at the position", got, row)

    def _wrong(self, expected: str, got: str, row: dict[str, Any]) -> OrderError:
        return OrderError(
            expected,
            got,
            format=None if self._after is None else self._after.format,
            message=row["message"],
            record=row["record"],
            state="after a position",
            open="",
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


def _has_xid(batch: pa.RecordBatch, xids: Iterable[int | None]) -> pa.BooleanArray:
    return pc.is_in(batch["xid"], pa.array([xid if xid is None else signed(xid) for xid in xids], pa.int64()))


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
    except BadRows:  # of rows that were read, and that the lake cannot take
        raise
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
