"""pgoutput: samples of every message, bad messages, and generated streams."""

from __future__ import annotations

from dataclasses import replace

import wireformat as wf

from ..handmade import u16, u32, u64
from ..handmade_pgoutput import (
    ALL,
    DESCRIBED,
    NULL,
    OPENGAUSS,
    RELATION,
    ROWS,
    STREAMED,
    TIME,
    TIME_TEXT,
    change,
    column,
    envelope,
    image,
    relation,
    row,
    streamed,
    text,
)
from ..pgoutput_strategies import streams
from .record import Bad, Sample, Support

FORMAT = "pgoutput"
ONE = image(b"N", text(b"1"), NULL)
GOOD = change(b"I", ONE)
TABLE = "table public.t"

BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "short data: expected a record, got an empty message [pgoutput: byte 0, record 0]"),
    "envelope without a record": (
        envelope(b"", 5),
        (
            "short data: expected 25 bytes and a record, got 25, then the message ends "
            "[pgoutput: byte 0, record 0, field envelope]"
        ),
    ),
    "begin cut": (
        b"B" + u64(5) + TIME[:3],
        (
            "short data: expected 8 bytes, got 3, then the record ends "
            f"[pgoutput: byte 9, record 0, field commit_time, bytes there {TIME[:3].hex(' ')}]"
        ),
    ),
    "begin too long": (
        b"B" + u64(5) + TIME + u32(7) + b"\1\2",
        "trailing bytes: expected the end of the record, got 2 more bytes [pgoutput: byte 21, record 0]",
    ),
    "time of no year": (
        b"B" + u64(5) + u64((1 << 63) - 1) + u32(7),
        (
            "bad value: expected a time from 4713 BC to 294246, got another "
            "[pgoutput: byte 9, record 0, field commit_time]"
        ),
    ),
    "flags of a commit": (
        b"C\1" + u64(5) + u64(6) + TIME,
        "bad value: expected flags 0, got 1 [pgoutput: byte 1, record 0, field flags]",
    ),
    "flags of a truncate": (
        b"T" + u32(0) + b"\4",
        "bad value: expected flags 0 to 3, got 4 [pgoutput: byte 5, record 0, field flags]",
    ),
    "flags of a message": (
        b"M\2" + u64(5) + b"\0" + u32(0),
        "bad value: expected flags 0 or 1, got 2 [pgoutput: byte 1, record 0, field transactional]",
    ),
    "first segment": (
        b"S" + u32(7) + b"\2",
        "bad value: expected 0 or 1, got 2 [pgoutput: byte 5, record 0, field first_segment]",
    ),
    "flags of a column": (
        relation(b"\2a\0" + u32(23) + u32(0)),
        "bad value: expected flags 0 or 1, got 2 [pgoutput: byte 17, record 0, field columns[0].is_key]",
    ),
    "replica identity": (
        relation(identity=b"x"),
        "bad value: expected 'd', 'n', 'f' or 'i', got 120 [pgoutput: byte 14, record 0, field replica_identity]",
    ),
    "fewer columns than said": (
        relation(column(b"a"))[:-10],
        (
            "short data: expected a zero byte that ends the text, got the end of the record "
            "[pgoutput: byte 18, record 0, field columns[0].name]"
        ),
    ),
    "a name without an end": (
        b"O" + u64(5) + b"node",
        (
            "short data: expected a zero byte that ends the text, got the end of the record "
            "[pgoutput: byte 9, record 0, field origin]"
        ),
    ),
    "a name that is no text": (
        b"O" + u64(5) + b"ab\xff\0",
        (
            "bad text: expected text in utf-8, got 1 invalid byte "
            "[pgoutput: byte 9, record 0, field origin, byte in the field 2]"
            "; if the server uses another encoding, pass its Python name as `encoding`"
        ),
    ),
    "no image": (
        change(b"I"),
        "short data: expected 'N', got the end of the record [pgoutput: byte 5, record 0, field images]",
    ),
    "another image": (
        change(b"I", image(b"O", text(b"1"), NULL)),
        "bad tag: expected 'N', got another byte [pgoutput: byte 5, record 0, field images]",
    ),
    "delete of nothing": (
        change(b"D", ONE),
        "bad tag: expected 'K' or 'O', got another byte [pgoutput: byte 5, record 0, field images]",
    ),
    "two images of an insert": (
        change(b"I", ONE, ONE),
        "trailing bytes: expected the end of the record, got 10 more bytes [pgoutput: byte 15, record 0]",
    ),
    "an old image after the new one": (
        change(b"U", ONE, image(b"K", NULL, NULL)),
        "trailing bytes: expected the end of the record, got 5 more bytes [pgoutput: byte 15, record 0]",
    ),
    "fewer cells than columns": (
        change(b"I", image(b"N", text(b"secret"))),
        (
            "bad length: expected 2 cells, a cell a column of the relation, got 1 "
            f"[pgoutput: byte 6, record 0, field new.cells, {TABLE}]"
        ),
    ),
    "more cells than columns": (
        change(b"D", image(b"O", NULL, NULL, NULL)),
        (
            "bad length: expected 2 cells, a cell a column of the relation, got 3 "
            f"[pgoutput: byte 6, record 0, field old.cells, {TABLE}]"
        ),
    ),
    "more cells than there are": (
        change(b"I", b"N" + u16(65535) + NULL),
        (
            "short data: expected 'n' or 'u' or 't' or 'b', got the end of the record "
            "[pgoutput: byte 9, record 0, field new.cells[1].cell]"
        ),
    ),
    "a cell of no kind": (
        change(b"I", image(b"N", b"x", NULL)),
        "bad tag: expected 'n' or 'u' or 't' or 'b', got 'x' [pgoutput: byte 8, record 0, field new.cells[0].cell]",
    ),
    "a cell longer than the message": (
        change(b"I", image(b"N", b"t" + u32(0xFFFFFFFF), NULL)),
        (
            "bad length: expected a length of at most 1, the rest of the record, got 4294967295 "
            "[pgoutput: byte 9, record 0, field new.cells[0].cell, bytes there ff ff ff ff]"
        ),
    ),
    "a binary cell longer than the message": (
        change(b"I", image(b"N", b"b" + u32(2), NULL)),
        (
            "bad length: expected a length of at most 1, the rest of the record, got 2 "
            "[pgoutput: byte 9, record 0, field new.cells[0].cell, bytes there 00 00 00 02]"
        ),
    ),
    "a value that is no text": (
        change(b"I", image(b"N", text(b"secret\xff"), NULL)),
        (
            "bad text: expected text in utf-8, got 1 invalid byte "
            "[pgoutput: byte 13, record 0, field new.cells[0].cell, byte in the field 6]"
            "; if the server uses another encoding, pass its Python name as `encoding`"
        ),
    ),
    "more tables than there are": (
        b"T" + u32(0xFFFFFFFF) + b"\0" + u32(16385),
        (
            "short data: expected 4 bytes, got 0, then the record ends "
            "[pgoutput: byte 10, record 0, field relation_ids[1]]"
        ),
    ),
    "a content longer than the message": (
        b"M\1" + u64(5) + b"p\0" + u32(9) + b"secret",
        (
            "bad length: expected a length of at most 6, the rest of the record, got 9 "
            "[pgoutput: byte 12, record 0, field content, bytes there 00 00 00 09]"
        ),
    ),
    "keepalive that is no flag": (
        b"k" + u64(5) + TIME + b"\7",
        "bad value: expected 0 or 1, got 7 [pgoutput: byte 17, record 0, field reply]",
    ),
    "half of a parallel abort": (
        b"A" + u32(7) + u32(7) + u64(5),
        "short data: expected 8 bytes, got 0, then the record ends [pgoutput: byte 17, record 0, field commit_time]",
    ),
}


IN_ENVELOPE = envelope(GOOD, 1 << 40)
LIES = {
    "65535 columns": relation()[:-2] + b"\xff\xff" + column(b"a") * 3,
    "4294967295 tables": b"T" + u32(0xFFFFFFFF) + b"\0" + u32(16385) * 9,
    "65535 cells": change(b"I", b"N" + u16(0xFFFF) + NULL * 40),
    "value of 2 GB": change(b"I", image(b"N", b"t" + u32(0x7FFFFFFF), NULL)),
    "content of 4 GB": b"M\0" + u64(1) + b"\0" + u32(0xFFFFFFFF),
}
_UPDATE, _DELETE = ROWS["update of all"][0], ROWS["delete by all"][0]
_TABLE = {"table_schema": "public", "table_name": "t"}
_DIALECT = {"dialect": "opengauss"}


def reduced(event: wf.Event) -> wf.Event:
    """An old tuple is always of a kind."""
    return replace(event, old_kind=None) if isinstance(event, wf.RowChange) else event


def _sample(name: str, message: bytes, event: wf.Event) -> Sample:
    return Sample(message=message, events=[event], one_in=3)


SUPPORT = Support(
    format=FORMAT,
    good=GOOD,
    stream=[
        wf.Begin(commit_lsn=5, commit_time=TIME_TEXT, xid=700),
        RELATION,
        wf.Insert(**_TABLE, new=row("1", "x")),
        wf.Update(**_TABLE, new=row("2", "y"), old=row("1", "x"), old_kind="full"),
        wf.Delete(**_TABLE, old=row("2", "y"), old_kind="full"),
        wf.Commit(commit_lsn=5, end_lsn=6, commit_time=TIME_TEXT),
    ],
    samples={name: _sample(name, *pair) for name, pair in ALL.items()}
    | {
        name: Sample(message=data, events=[event], reading=_DIALECT, writing=_DIALECT, one_in=3)
        for name, (data, event) in OPENGAUSS.items()
    }
    | {"envelope": Sample(message=IN_ENVELOPE, written=GOOD, one_in=3)},
    bad={name: Bad(message=message, facts={"text": words}) for name, (message, words) in BAD.items()},
    events=streams,
    reduced=reduced,
    before=[DESCRIBED],
    probes=[GOOD, streamed(GOOD)],
    splices=[
        (_UPDATE, _DELETE),
        (_DELETE, _UPDATE),
        (GOOD, DESCRIBED),
        (STREAMED["stream prepare"][0], _UPDATE),
    ],
    readings={"opengauss": _DIALECT},
    lies=LIES,
    has_lengths=True,
    options={"dialect": ["postgresql", "opengauss"]},
)
