"""Where whole transactions end among messages of CopyData, and which LSN may then be reported as safe."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..arrow import changes
from ..arrow.arrays import Array
from ..errors import BadTag, ShortData
from ..framing.copy_data import ENVELOPE, ENVELOPE_BYTES, KEEPALIVE
from ..lsn import unsigned
from .messages import POSTGRES, Feedback


class Piece(NamedTuple):
    """Messages of a stream, in the form that the format reads.

    messages   the messages
    whole      the number of messages up to the end of the last whole transaction
    lsn        everything before this LSN is in the first `whole` messages or was in earlier ones; None if no
               transaction ended
    received   the LSN of the last message or keepalive
    asked      whether the server wants an answer now
    ended_us   when the last whole transaction was committed, or was sent if the message does not say that, in
               microseconds since 2000; None if no transaction ended
    """

    messages: pa.Array
    whole: int
    lsn: int | None
    received: int
    asked: bool
    ended_us: int | None


_LSN_AT, _SENT_AT = 1, 17
"""Where an envelope has its LSN, and the time at which the server sent it."""

_COMMIT_LSN_AT = ENVELOPE_BYTES + 1
"""Where a BEGIN of pgoutput has the LSN of its commit."""

END_LSN_AT, _COMMIT_TIME_AT = ENVELOPE_BYTES + 10, ENVELOPE_BYTES + 18
"""Where a COMMIT of pgoutput has its end LSN and its time: after its tag, a byte of flags and the LSN of the commit."""


class FirstBytes:
    """Formats in which the first letter of a record distinguishes BEGIN and COMMIT.

    begins, ends   the letters
    lsn_at         the offset of the LSN after the transaction in its last message, in the envelope or after it
    time_at        the offset of its time there
    has_envelope   whether the format reads messages with their envelopes
    """

    def __init__(self, begins: bytes, ends: bytes, lsn_at: int, time_at: int, *, has_envelope: bool) -> None:
        self._begins = np.frombuffer(begins, np.uint8)
        self._ends = np.frombuffer(ends, np.uint8)
        self._lsn_at = lsn_at
        self.time_at = time_at
        self._has_envelope = has_envelope

    def find(self, messages: pa.Array) -> tuple[pa.Array, Array, Array]:
        """Returns the messages as the format reads them, and int64[n] of those that begin and that end a transaction.

        messages   binary, with their envelopes
        """
        kinds = bytes_at(messages, ENVELOPE_BYTES)
        begins, ends = (np.flatnonzero(np.isin(kinds, letters)) for letters in (self._begins, self._ends))
        return messages if self._has_envelope else without_envelopes(messages), begins, ends

    def lsn(self, messages: pa.Array, index: int) -> int:
        """Returns the LSN just after the transaction that ends in a message with its envelope."""
        return number_at(messages[index].as_py(), self._lsn_at)


class RecordKinds:
    """Formats with several records in a message, whose kinds the scan finds.

    reading   how a Capture reads the stream: mode, encoding, encoding_errors. Other options are not used

    A record that cannot be read may be the BEGIN of a transaction, which is then open until the next one that ends.
    """

    time_at = _SENT_AT
    _KINDS = ("BEGIN", "COMMIT", "ABORT", "PREPARE")

    def __init__(self, format: str, **reading: Any) -> None:
        self._format = format
        self._reading: dict[str, Any] = {
            name: reading[name] for name in ("encoding", "encoding_errors") if name in reading
        }
        if reading.get("mode", "FAILFAST") != "FAILFAST":  # also what is dropped may be a BEGIN
            self._reading["mode"] = "PERMISSIVE"
        self._lsns: dict[int, int] = {}

    def find(self, messages: pa.Array) -> tuple[pa.Array, Array, Array]:
        """See FirstBytes.find. A message in which another transaction begins is not the end of one."""
        plain = without_envelopes(messages)
        rows = changes(plain, self._format, columns=["message", "kind", "lsn"], kinds=self._KINDS, **self._reading)
        kind = np.asarray(rows["kind"])
        message = rows["message"].to_numpy()
        lsns = rows["lsn"].to_pylist()
        is_last = np.append(message[1:] != message[:-1], True) if len(message) else np.zeros(0, bool)
        is_begin = (kind == "BEGIN") | (kind == "CORRUPT")
        ends = np.flatnonzero(is_last & ~is_begin)
        self._lsns = {int(message[row]): unsigned(lsns[row]) for row in ends.tolist() if lsns[row] is not None}
        return plain, message[is_last & is_begin], message[ends]

    def lsn(self, messages: pa.Array, index: int) -> int:
        """See FirstBytes.lsn: that of the record, or else of the envelope."""
        return self._lsns.get(index) or number_at(messages[index].as_py(), _LSN_AT)


class Cutter:
    """Cuts a stream at the ends of whole transactions.

    ends          finds the ends of transactions
    until         for pgoutput: transactions that are committed at this LSN or later are left out
    feedback      how the server lays out keepalives
    is_parallel   whether the server decodes in parallel. The LSN of a keepalive then says how far the server has read
                  its log. Transactions before it may still be decoded, or wait in a batch, so that only ends of
                  transactions are positions. In serial decoding, a keepalive comes after all transactions that end
                  before its LSN. Source: openGauss-server 7e1fc94a: XLogSendParallelLogical of walsender.cpp takes the
                  LSN from LogicalReadRecordMain of parallel_decode_worker.cpp

    `is_open` is whether a transaction has begun, and not ended. Raises DecodeError.
    """

    def __init__(
        self,
        ends: FirstBytes | RecordKinds,
        until: int | None = None,
        *,
        feedback: Feedback = POSTGRES,
        is_parallel: bool = False,
    ) -> None:
        self._ends = ends
        self._until = until
        self._feedback = feedback
        self.is_parallel = is_parallel
        self.is_open = False
        self._is_past = False

    def piece(self, found: pa.Array) -> Piece:
        """Returns the next piece of a stream, from CopyData with envelopes and keepalives."""
        if self._until is None:
            return self._piece(found)
        piece = self._piece(found[: self._first_past(found, self._until)])
        if self._is_past:
            return piece._replace(lsn=self._until)
        return piece if piece.lsn is None else piece._replace(lsn=min(piece.lsn, self._until))

    def _first_past(self, found: pa.Array, until: int) -> int:
        """Returns the index of the first message that is left out, or the number of messages."""
        if self._is_past:
            return 0
        is_begin = (bytes_at(found, 0) == ENVELOPE) & (bytes_at(found, ENVELOPE_BYTES) == ord("B"))
        begins = np.flatnonzero(is_begin).tolist()
        past = bisect_left(begins, until, key=lambda index: number_at(found[index].as_py(), _COMMIT_LSN_AT))
        self._is_past = past < len(begins)
        return begins[past] if self._is_past else len(found)

    def _piece(self, found: pa.Array) -> Piece:
        keepalives = _keepalives(found)
        messages = _without(found, keepalives) if keepalives else found
        plain, begins, ends = self._ends.find(messages)
        was_open = self.is_open
        last_begin = int(begins[-1]) if len(begins) else -1
        last_end = int(ends[-1]) if len(ends) else -1
        self.is_open = last_begin > last_end or (was_open and last_end < 0)
        lsn = self._ends.lsn(messages, last_end) if last_end >= 0 else None
        ended_us = number_at(messages[last_end].as_py(), self._ends.time_at) if last_end >= 0 else None
        received, sent, asked = 0, 0, False
        if len(messages):
            received = number_at(messages[-1].as_py(), _LSN_AT)
        for index in keepalives:
            sent, asks = self._feedback.read_keepalive(found[index].as_py())
            received, asked = max(received, sent), asked or asks
        if keepalives and not self.is_open and not self.is_parallel:
            lsn = max(lsn or 0, sent)
        whole = last_end + 1 if self.is_open else len(messages)
        return Piece(plain, whole, lsn, received, asked, ended_us)


def ends_of(format: str, **reading: Any) -> FirstBytes | RecordKinds:
    """Returns what finds the ends of transactions of a format; `reading` is that of RecordKinds."""
    if format == "pgoutput":
        return FirstBytes(b"B", b"C", END_LSN_AT, _COMMIT_TIME_AT, has_envelope=True)
    if format == "test-decoding":
        return FirstBytes(b"B", b"CP", _LSN_AT, _SENT_AT, has_envelope=False)
    return RecordKinds(format, **reading)


def _keepalives(found: pa.Array) -> list[int]:
    """Returns the indices of keepalives. Raises DecodeError if another message has no whole envelope."""
    tags = bytes_at(found, 0)
    others = np.flatnonzero(tags != KEEPALIVE)
    wrong = others[tags[others] != ENVELOPE]
    if len(wrong):
        got = repr(found[int(wrong[0])].as_py()[:1])
        raise BadTag("'w', the envelope of CopyData, or 'k', a keepalive", got, message_offset=0, path="envelope")
    sizes = sizes_of(found)[others]
    if len(sizes) and sizes.min() < ENVELOPE_BYTES:
        expected = f"an envelope of {ENVELOPE_BYTES} bytes"
        raise ShortData(expected, f"{sizes.min()}, then the message ends", message_offset=0, path="envelope")
    return [int(index) for index in np.flatnonzero(tags == KEEPALIVE)]


def _without(messages: pa.Array, indices: list[int]) -> pa.Array:
    """Returns the messages without those at some indices, which are few."""
    bounds = zip([0, *(index + 1 for index in indices)], [*indices, len(messages)], strict=True)
    kept = [messages[first:end] for first, end in bounds if end > first]
    return kept[0] if len(kept) == 1 else pa.concat_arrays(kept) if kept else messages[:0]


def number_at(message: bytes, at: int) -> int:
    """Returns the unsigned 64-bit number at a byte of a message."""
    return int.from_bytes(message[at : at + 8], "big")


def sizes_of(messages: pa.Array) -> Array:
    """Returns int[n]: the number of bytes of each message."""
    return np.diff(_offsets_and_bytes(messages)[0]) if len(messages) else np.zeros(0, np.int64)


def bytes_at(messages: pa.Array, at: int) -> Array:
    """Returns uint8[n]: the byte of each message at an offset; 0 if the message is shorter."""
    if not len(messages):
        return np.zeros(0, np.uint8)
    offsets, data = _offsets_and_bytes(messages)
    where = offsets[:-1] + at
    is_there = where < offsets[1:]
    return np.where(is_there, data[np.where(is_there, where, 0)], np.uint8(0))


def without_envelopes(messages: pa.Array) -> pa.Array:
    """Returns the messages without the envelopes of CopyData, which all must have."""
    if not len(messages):
        return messages
    offsets, data = _offsets_and_bytes(messages)
    is_kept = np.ones(offsets[-1] - offsets[0], bool)
    is_kept[(offsets[:-1, None] - offsets[0] + np.arange(ENVELOPE_BYTES)).reshape(-1)] = False
    kept = data[offsets[0] : offsets[-1]][is_kept]
    new = offsets - offsets[0] - ENVELOPE_BYTES * np.arange(len(offsets), dtype=offsets.dtype)
    return pa.Array.from_buffers(messages.type, len(messages), [None, pa.py_buffer(new), pa.py_buffer(kept)])


def _offsets_and_bytes(messages: pa.Array) -> tuple[Array, Array]:
    """Returns int[n + 1]: where each message begins and the last one ends; and uint8[m]: the bytes of all messages."""
    width = np.int64 if pa.types.is_large_binary(messages.type) else np.int32
    _, offsets, data = messages.buffers()
    found = np.frombuffer(offsets, width)[messages.offset : messages.offset + len(messages) + 1]
    return found, np.frombuffer(data, np.uint8)
