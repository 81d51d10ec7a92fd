"""gaussdb-binary: samples, bad messages spot by spot, and generated events."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import wireformat as wf

from ..accounting import EVERYTHING
from ..handmade import (
    COMMIT,
    DELETE,
    HEARTBEAT,
    INSERT,
    OTHER_SPELLINGS,
    SAMPLES,
    begin,
    cell,
    change,
    commit,
    long_text,
    message,
    new,
    old,
    origin,
    record,
    short_text,
    time,
    u16,
    u32,
    user,
    xid,
)
from ..strategies import events
from .record import MANY, Bad, Sample, Support, alone
from .texts import numbered, stream

FORMAT = "gaussdb-binary"

BODY = 12
"""Where the first record's kind byte lies."""

GOOD = message(INSERT)
SIZE = len(GOOD)
THIRD = SIZE + len(record(COMMIT)) + 1
"""Where the third record of a message lies."""
BARE = HEARTBEAT + b"F"
A = cell(b"a", 23, b"1")
CELLS = len(b"I" + short_text(b"s") + short_text(b"t") + b"N") + len(u16(1))
"""Where the first cell of `row` lies in its body."""


def row(*images: bytes) -> bytes:
    return change(b"U", b"s", b"t", *images)


def claimed(length: int, rest: bytes) -> bytes:
    """A message that begins with this length, whatever follows."""
    return u32(length) + rest


class _Spot(NamedTuple):
    """A bad message and what is expected of it. `byte` is where the field begins; `good` counts records before it."""

    data: bytes
    error: type[wf.DecodeError]
    byte: int
    path: str
    good: int = 0
    field_offset: int | None = None


FRAMING = {
    "an empty message": _Spot(b"", wf.ShortData, 0, "length"),
    "three bytes": _Spot(b"\0\0\0", wf.ShortData, 0, "length"),
    "a length alone": _Spot(u32(9), wf.BadLength, 0, "length"),
    "an end and no record": _Spot(b"F", wf.ShortData, 0, "length"),
    "a zero length and no record": _Spot(u32(0), wf.BadLength, 0, "length"),
    "a timeout and no record": _Spot(b"P" + u32(0), wf.BadLength, 0, "length"),
    "a length without room for the kind": _Spot(claimed(8, GOOD[4:]), wf.BadLength, 0, "length"),
    "a length one too long": _Spot(claimed(SIZE - 3, GOOD[4:]), wf.BadLength, 0, "length"),
    "a length longer than any record": _Spot(claimed(0x40000000, GOOD[4:]), wf.BadLength, 0, "length"),
    "4 GB in 30 bytes": _Spot(claimed(0xFFFFFFFF, bytes(26)), wf.BadLength, 0, "length"),
    "4 GB in a second record": _Spot(
        GOOD[:-1] + b"P" + claimed(0xFFFFFFFF, bytes(26)), wf.BadLength, SIZE, "length", good=1
    ),
    "no separator": _Spot(GOOD[:-1], wf.ShortData, SIZE - 1, "separator", good=1),
    "a wrong separator": _Spot(GOOD[:-1] + b"f", wf.BadTag, SIZE - 1, "separator", good=1),
    "a wrong separator before a record": _Spot(GOOD[:-1] + b"\0" + GOOD, wf.BadTag, SIZE - 1, "separator", good=1),
    "nothing after P": _Spot(GOOD[:-1] + b"P", wf.ShortData, SIZE, "length", good=1),
    "three zeros after P": _Spot(GOOD[:-1] + b"P\0\0\0", wf.ShortData, SIZE, "length", good=1),
    "a length too small after P": _Spot(GOOD[:-1] + b"P" + claimed(1, GOOD[4:]), wf.BadLength, SIZE, "length", good=1),
    "a byte after F": _Spot(GOOD + b"F", wf.TrailingBytes, SIZE, "end", good=1),
    "a message after F": _Spot(GOOD + GOOD, wf.TrailingBytes, SIZE, "end", good=1),
    "a byte after the timeout": _Spot(
        message(INSERT, end=b"P\0\0\0\0") + b"\0", wf.TrailingBytes, SIZE + 4, "end", good=1
    ),
    "a bare heartbeat cut short": _Spot(BARE[:24], wf.ShortData, 0, "heartbeat"),
    "a bare heartbeat without an end": _Spot(BARE[:25], wf.ShortData, 25, "separator", good=1),
    "a bare heartbeat before a record": _Spot(BARE[:25] + b"P" + GOOD, wf.BadTag, 25, "separator", good=1),
    "a byte after a bare heartbeat": _Spot(BARE + b"\0", wf.TrailingBytes, 26, "end", good=1),
    "a bare heartbeat inside a batch": _Spot(GOOD[:-1] + b"P" + BARE, wf.BadLength, SIZE, "length", good=1),
}

BODIES: dict[str, tuple[bytes, type[wf.DecodeError], int, str]] = {
    "an insert without a table": (b"I", wf.ShortData, 1, "table_schema"),
    "an insert with half a length": (b"I\0", wf.ShortData, 1, "table_schema"),
    "a schema longer than the record": (b"I" + u16(9) + b"s" + short_text(b"t"), wf.BadLength, 1, "table_schema"),
    "a table that is not there": (b"I" + short_text(b"s"), wf.ShortData, 4, "table_name"),
    "a table longer than the record": (b"I" + short_text(b"s") + u16(2) + b"t", wf.BadLength, 4, "table_name"),
    "an unknown tag": (row(b"K" + u16(0)), wf.BadTag, 7, "tag"),
    "an unknown tag after a tuple": (row(new(A), b"K"), wf.BadTag, CELLS + len(A), "tag"),
    "a zero byte after the tuples": (row(new(), old(), b"\0"), wf.BadTag, 13, "tag"),
    "O before N": (row(old(), new()), wf.BadTag, 10, "tag"),
    "a second N": (row(new(), new()), wf.BadTag, 10, "tag"),
    "a second O": (row(old(), old()), wf.BadTag, 10, "tag"),
    "a tuple without a count": (row(b"N"), wf.ShortData, 8, "new.cells"),
    "a tuple with half a count": (row(b"N\0"), wf.ShortData, 8, "new.cells"),
    "a count that runs out": (row(b"N" + u16(2) + A), wf.ShortData, CELLS + len(A), "new.cells[1].name"),
    "a count of 65535": (row(new(), b"O" + u16(65535) + A), wf.ShortData, CELLS + 3 + len(A), "old.cells[1].name"),
    "a name longer than the record": (row(new(u16(500) + A[2:])), wf.BadLength, CELLS, "new.cells[0].name"),
    "a type cut short": (row(new(A[:6])), wf.ShortData, CELLS + 3, "new.cells[0].type_oid"),
    "a value length cut short": (row(new(A[:9])), wf.ShortData, CELLS + 7, "new.cells[0].value"),
    "a value cut short": (row(new(A[:-1])), wf.BadLength, CELLS + 7, "new.cells[0].value"),
    "a value of 4 GB": (row(new(A[:7] + u32(0xFFFFFFFE) + b"1")), wf.BadLength, CELLS + 7, "new.cells[0].value"),
    "a value of 2 GB": (row(new(A[:7] + u32(0x80000000) + b"1")), wf.BadLength, CELLS + 7, "new.cells[0].value"),
    "a begin without a csn": (b"B", wf.ShortData, 1, "csn"),
    "a begin cut short": (begin(1, 2)[:-1], wf.ShortData, 9, "first_lsn"),
    "a begin with an unknown tag": (begin(1, 2, b"Z"), wf.BadTag, 17, "tag"),
    "a second X": (begin(1, 2, xid(1), xid(1)), wf.BadTag, 26, "tag"),
    "a second T": (commit(time(b"t"), time(b"t")), wf.BadTag, 7, "tag"),
    "a second O in a commit": (commit(origin(1), origin(1)), wf.BadTag, 6, "tag"),
    "a second N in a commit": (commit(user(b""), xid(1), user(b"")), wf.BadTag, 15, "tag"),
    "an xid cut short": (commit(xid(1)[:-1]), wf.ShortData, 2, "xid"),
    "an origin cut short": (commit(origin(1)[:-1]), wf.ShortData, 2, "origin"),
    "a time without a length": (commit(b"T\0\0"), wf.ShortData, 2, "commit_time"),
    "a time longer than the record": (commit(b"T" + u32(2) + b"t"), wf.BadLength, 2, "commit_time"),
    "a time that is NULL": (commit(b"T" + long_text(None)), wf.BadLength, 2, "commit_time"),
    "a user of 4 GB": (begin(1, 2, b"N" + u32(0xFFFFFFFE)), wf.BadLength, 18, "username"),
    "a heartbeat without numbers": (b"h", wf.ShortData, 1, "wal_end"),
    "a heartbeat cut short": (HEARTBEAT[:-1], wf.ShortData, 17, "time"),
    "a heartbeat without its last number": (HEARTBEAT[:17], wf.ShortData, 17, "time"),
    "a name that opens a quote": (row(new(cell(b'"', 23, b""))), wf.BadValue, CELLS, "new.cells[0].name"),
    "a name that is not closed": (row(new(cell(b'"a', 23, b""))), wf.BadValue, CELLS, "new.cells[0].name"),
    "a name with a single quote in it": (row(old(A, cell(b'"a"b"', 23, b""))), wf.BadValue, 22, "old.cells[1].name"),
    "a name closed by a doubled quote": (row(old(cell(b'"a""', 23, b""))), wf.BadValue, CELLS, "old.cells[0].name"),
}
"""Body, error, byte of the body where the field begins, path."""

NO_UTF8 = {"stray": b"ab\xffcd", "cut": b"abc\xe8\xa1", "surrogate": b"ab\xed\xa0\x80", "long form": b"ab\xc0\xaf"}
BAD_TEXT_PLACES = {
    "table_schema": (lambda text: change(b"I", text, b"t"), 3),
    "table_name": (lambda text: change(b"I", b"s", text), 6),
    "new.cells[0].name": (lambda text: row(new(cell(text, 23, b""))), CELLS + 2),
    "new.cells[0].value": (lambda text: row(new(cell(b"a", 23, text))), CELLS + 11),
    "old.cells[1].name": (lambda text: row(old(A, cell(text, 23, b""))), CELLS + len(A) + 2),
    "old.cells[1].value": (lambda text: row(new(A), old(A, cell(b"a", 23, text))), CELLS + len(A) + 3 + len(A) + 11),
    "commit_time": (lambda text: commit(xid(1), time(text)), 15),
    "username": (lambda text: begin(1, 2, user(text)), 22),
}


def _bad_text() -> Iterator[tuple[str, _Spot]]:
    for path, (body, at) in BAD_TEXT_PLACES.items():
        for name, text in NO_UTF8.items():
            first_bad = next(
                place for place in range(len(text)) if not _is_utf8(text[: place + 1]) and text[place] > 127
            )
            yield f"{path}, {name}", _Spot(message(body(text)), wf.BadText, BODY + at, path, field_offset=first_bad)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_SPOTS = {
    **FRAMING,
    **{name: _Spot(message(body), error, BODY + at, path) for name, (body, error, at, path) in BODIES.items()},
    **{
        f"{name}, third of four": _Spot(message(INSERT, COMMIT, body, DELETE), error, THIRD + BODY + at, path, good=2)
        for name, (body, error, at, path) in BODIES.items()
    },
    "a byte after a heartbeat": _Spot(message(HEARTBEAT + b"\0"), wf.TrailingBytes, BODY + 25, ""),
    **dict(_bad_text()),
}


def _bad(spot: _Spot) -> Bad:
    facts = {
        "type": spot.error,
        "record": spot.good,
        "message_offset": spot.byte,
        "path": spot.path or None,
        "field_offset": spot.field_offset,
    }
    return Bad(message=spot.data, facts=facts, good=_good(spot))


def _good(spot: _Spot) -> list[bytes]:
    """The records before the bad spot, in messages of their own."""
    if spot.data[:1] == b"h":
        return [BARE][: spot.good]
    messages = []
    at = 0
    for _ in range(spot.good):
        stop = at + 4 + int.from_bytes(spot.data[at : at + 4], "big")
        messages.append(spot.data[at:stop] + b"F")
        at = stop + 1
    return messages


LIES = {
    "record of 4 GB": claimed(0xFFFFFFFF, bytes(26)),
    "record of 1 GB": claimed(0x3FFFFFFF, bytes(26)),
    "65535 cells": message(row(b"N" + u16(65535))),
    "65535 cells, twice": message(row(b"N" + u16(0), b"O" + u16(65535) + A)),
    "value of 4 GB": message(row(b"N" + u16(65535) + A[:7] + u32(0xFFFFFFFE))),
    "time of 4 GB": message(commit(b"T" + u32(0xFFFFFFFE))),
    "user of 2 GB": message(begin(1, 2, b"N" + u32(0x7FFFFFFF))),
    "schema of 64 KB": message(b"I" + u16(65535)),
}

ONE_IN = 11
"""One in this many mutants of a batch is tried: batches are long and made of the other samples."""


def batch_bytes(message: bytes) -> int:
    """The size at which the encoder closes a message as this one is closed: at its last record, or by timeout."""
    return MANY if message.endswith(b"P\0\0\0\0") else 25 + len(message) - 2


def sample(data: bytes, written: bytes | None = None, one_in: int = 1) -> Sample:
    """A message that the encoder closes as it is closed, or as the written one is."""
    return Sample(
        message=data,
        written=written,
        writing={"sending-batch": 1},
        batch_bytes=batch_bytes(written or data),
        one_in=one_in,
    )


SUPPORT = Support(
    format=FORMAT,
    good=GOOD,
    stream=numbered(stream(wf.Begin(csn=1, first_lsn=2, xid=5), wf.Commit(xid=5))),
    samples={name: sample(data, one_in=ONE_IN if name.startswith("batch") else 1) for name, data in SAMPLES.items()}
    | {name: sample(*pair) for name, pair in OTHER_SPELLINGS.items()},
    bad={name: _bad(spot) for name, spot in _SPOTS.items()},
    events=lambda encoding: alone(events(encoding)),
    writing=EVERYTHING[FORMAT],
    splices=[
        (SAMPLES[left], SAMPLES[right])
        for left, right in product(
            ("insert", "begin, bare", "heartbeat, bare", "no tuple"), ("update", "commit", "heartbeat, framed")
        )
    ],
    readings={
        "a kind of a table": {"kinds": ["UPDATE", "HEARTBEAT"], "tables": ["*.t 2"], "heartbeat_unit": "us"},
        "one schema, one table": {"tables": ["s.*", "*.表"]},
        "a table in another encoding": {"encoding": "gbk", "tables": ["*.t", "schéma.*"]},
    },
    lies=LIES,
    has_lengths=True,
    options={"heartbeat_unit": [None, "s", "us"]},
)
