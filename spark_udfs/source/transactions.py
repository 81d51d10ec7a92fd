"""Whole transactions of pgoutput that have arrived, and slices of them that can be read by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import wireformat as wf
from wireformat.formats.pgoutput.messages import RECORDS
from wireformat.framing.copy_data import ENVELOPE_BYTES
from wireformat.live.transaction_ends import END_LSN_AT, Piece, bytes_at

SLICE_BYTES = 8 << 20
"""A slice, which one task reads, ends at the first end of a transaction after this many bytes."""

TRANSACTION_BYTES = 1 << 30
"""The largest transaction: it is in memory as a whole, and travels with one task."""

_TAGS = {event: tag for tag, (event, _) in RECORDS["postgresql"].items()}
_COMMIT, _RELATION, _TYPE, _TRUNCATE = (_TAGS[event] for event in (wf.Commit, wf.Relation, wf.Type, wf.Truncate))
_ROWS = np.array([_TAGS[event] for event in (wf.Insert, wf.Update, wf.Delete)], np.uint8)

_RELATION_ID_AT = ENVELOPE_BYTES + 1
"""Where a row change has the OID of its table."""

Array = npt.NDArray[np.generic]


class Limit(NamedTuple):
    """How much a range may have; at least one transaction is in it. None is without limit."""

    most_bytes: int | None = None
    most_rows: int | None = None


@dataclass
class Arrived:
    """Messages that end with a whole transaction.

    messages   with their envelopes, without keepalives
    kinds      uint8[n]: the letter of each message
    lsns       uint64[k]: the LSN just after each transaction, which rises
    stops      int64[k]: where each ends in `messages`
    sizes, rows   int64[k]: bytes and rows up to there
    """

    messages: pa.Array
    kinds: Array
    lsns: Array
    stops: Array
    sizes: Array
    rows: Array

    @classmethod
    def of(cls, messages: pa.Array) -> Arrived:
        """Looks at messages, of which the last one is a COMMIT."""
        kinds = bytes_at(messages, ENVELOPE_BYTES)
        last = np.flatnonzero(kinds == _COMMIT)
        offsets = np.frombuffer(messages.buffers()[1], np.int32)[messages.offset : messages.offset + len(messages) + 1]
        rows = np.cumsum(np.isin(kinds, _ROWS) | (kinds == _TRUNCATE))
        stops = last + 1
        return cls(
            messages,
            kinds,
            _numbers_at(messages.take(pa.array(last)), END_LSN_AT, 8),
            stops,
            offsets[stops].astype(np.int64) - int(offsets[0]),
            rows[last],
        )

    def after(self, lsn: int) -> Arrived | None:
        """Returns the transactions that end after an LSN."""
        first = int(np.searchsorted(self.lsns, np.uint64(lsn), side="right"))
        return self.cut(first, len(self.lsns))

    def until(self, lsn: int) -> Arrived | None:
        """Returns the transactions that end at an LSN or before it."""
        return self.cut(0, int(np.searchsorted(self.lsns, np.uint64(lsn), side="right")))

    def cut(self, first: int, stop: int) -> Arrived | None:
        """Returns some of the transactions; None for none."""
        if first >= stop:
            return None
        if (first, stop) == (0, len(self.lsns)):
            return self
        before = int(self.stops[first - 1]) if first else 0
        end = int(self.stops[stop - 1])
        size, rows = (int(self.sizes[first - 1]), int(self.rows[first - 1])) if first else (0, 0)
        return Arrived(
            self.messages[before:end],
            self.kinds[before:end],
            self.lsns[first:stop],
            self.stops[first:stop] - before,
            self.sizes[first:stop] - size,
            self.rows[first:stop] - rows,
        )

    def descriptions(self) -> dict[bytes, bytes]:
        """Returns the messages that describe tables and types, by letter and OID; the last of each."""
        found = np.flatnonzero((self.kinds == _RELATION) | (self.kinds == _TYPE))
        messages = (self.messages[int(index)].as_py()[ENVELOPE_BYTES:] for index in found)
        return {message[:5]: message for message in messages}

    def needed(self, known: dict[bytes, bytes]) -> list[bytes]:
        """Returns which of the known descriptions the messages may need: all types, and the tables they name."""
        if not known:
            return []
        tables = [key for key in known if key[0] == _RELATION]
        if not (self.kinds == _TRUNCATE).any():
            named = set(np.unique(_numbers_at(self.messages, _RELATION_ID_AT, 4)[np.isin(self.kinds, _ROWS)]).tolist())
            tables = [key for key in tables if int.from_bytes(key[1:], "big") in named]
        return [known[key] for key in known if key[0] == _TYPE] + [known[key] for key in tables]


@dataclass
class Buffer:
    """The transactions of a stream between two LSNs, which may be asked for again until they are dropped.

    origin    every transaction that ends after it, up to `reached`, is here
    reached   the LSN of the last transaction or, if nothing came after it, of a keepalive
    """

    origin: int
    reached: int = field(init=False)
    size: int = 0
    _arrived: list[Arrived] = field(default_factory=list)
    _rest: list[pa.Array] = field(default_factory=list)
    _rest_size: int = 0
    _known: dict[bytes, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reached = self.origin

    def add(self, piece: Piece) -> None:
        """Adds messages as they arrive. What the server sends again is dropped. Raises LimitExceeded."""
        head, tail = piece.messages[: piece.whole], piece.messages[piece.whole :]
        if len(head):
            self._add(pa.concat_arrays([*self._rest, head]))
            self._rest, self._rest_size = [], 0
        if len(tail):
            self._rest.append(tail)
            self._rest_size += tail.nbytes
            if self._rest_size > TRANSACTION_BYTES:
                raise wf.LimitExceeded(
                    f"the size of a transaction is limited to {TRANSACTION_BYTES} bytes, since it travels to one task: "
                    "read the slot with wireformat.live.follow, which keeps it in a file"
                )
        self.reached = max(self.reached, piece.lsn or 0)

    def _add(self, messages: pa.Array) -> None:
        arrived = Arrived.of(messages)
        again, found = arrived.until(self.reached), arrived.after(self.reached)
        if again is not None:  # the server describes a table once, maybe there
            self._known |= again.descriptions()
        if found is not None:
            self._arrived.append(found)
            self.size += int(found.sizes[-1])

    def drop(self, lsn: int) -> None:
        """Forgets transactions that end at an LSN or before it."""
        kept = []
        for one in self._arrived:
            gone, rest = one.until(lsn), one.after(lsn)
            if gone is not None:
                self._known |= gone.descriptions()
                self.size -= int(gone.sizes[-1])
            if rest is not None:
                kept.append(rest)
        self._arrived = kept
        self.origin = max(self.origin, lsn)

    def end(self, start: int, limit: Limit, until: int | None) -> int | None:
        """Returns the LSN after the transactions of a range that begins after `start`; None if there are none.

        until   the range ends there at the latest
        """
        end, size, rows = None, 0, 0
        for one in self._after(start):
            found = one if until is None else one.until(until)
            if found is None:
                return end
            fits = len(found.lsns)
            for most, before, of_each in ((limit.most_bytes, size, found.sizes), (limit.most_rows, rows, found.rows)):
                if most is not None:
                    fits = min(fits, int(np.searchsorted(of_each, most - before, side="right")))
            if end is None:
                fits = max(fits, 1)
            if fits:
                end = int(found.lsns[fits - 1])
            if fits < len(one.lsns):
                return end
            size, rows = size + int(one.sizes[-1]), rows + int(one.rows[-1])
        return end

    def _after(self, start: int) -> Iterator[Arrived]:
        for one in self._arrived:
            found = one.after(start)
            if found is not None:
                yield found

    def slices(self, start: int, end: int) -> list[pa.Array]:
        """Returns the transactions of a range. Each slice describes what its rows are of."""
        known, parts = dict(self._known), list[Arrived]()
        for one in self._arrived:
            before, found = one.until(start), one.after(start)
            if before is not None:
                known |= before.descriptions()
            found = None if found is None else found.until(end)
            parts.extend(() if found is None else _parts(found))
        slices = []
        for part in _joined(parts):
            slices.append(_whole(part, part.needed(known)))
            known |= part.descriptions()
        return slices


def _parts(arrived: Arrived) -> Iterator[Arrived]:
    first = 0
    while first < len(arrived.lsns):
        before = int(arrived.sizes[first - 1]) if first else 0
        stop = max(int(np.searchsorted(arrived.sizes, before + SLICE_BYTES, side="right")), first + 1)
        part = arrived.cut(first, stop)
        if part is not None:
            yield part
        first = stop


def _joined(parts: Iterable[Arrived]) -> Iterator[Arrived]:
    """Yields the parts, small neighbours as one: a task for each would take longer than its rows."""
    waiting, size = list[pa.Array](), 0
    for part in parts:
        own = int(part.sizes[-1])
        if waiting and size + own > SLICE_BYTES:
            yield Arrived.of(pa.concat_arrays(waiting))
            waiting, size = [], 0
        waiting.append(part.messages)
        size += own
    if waiting:
        yield Arrived.of(pa.concat_arrays(waiting))


def _whole(part: Arrived, descriptions: Sequence[bytes]) -> pa.Array:
    """Returns the messages with descriptions after the first BEGIN, where the server sends them too."""
    if not descriptions:
        return part.messages
    envelope = part.messages[0].as_py()[:ENVELOPE_BYTES]
    added = pa.array([envelope + message for message in descriptions], part.messages.type)
    return pa.concat_arrays([part.messages[:1], added, part.messages[1:]])


def _numbers_at(messages: pa.Array, at: int, size: int) -> Array:
    """Returns the unsigned numbers of `size` bytes at byte `at` of each message."""
    found = np.zeros(len(messages), np.uint64)
    for index in range(size):
        found = (found << np.uint64(8)) | bytes_at(messages, at + index).astype(np.uint64)
    return found
