"""fixed-width, the format of tests/outside: what its tests need; messages are put together without it."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import wireformat as wf

from ..strategies import U64, characters
from .record import Bad, Sample, Support, alone
from .texts import stream

FORMAT = "fixed-width"


def column(side: bytes, name: bytes, value: bytes | None, type: bytes = b"text") -> bytes:
    return side + name.ljust(16) + type.ljust(24) + (b"~" if value is None else b"=") + (value or b"").ljust(30)


def row(kind: bytes, *columns: bytes, table: bytes = b"orders") -> bytes:
    return kind.ljust(7) + b"public".ljust(16) + table.ljust(16) + b"".join(columns)


ID = column(b"+", b"id", b"1", b"integer")
INSERT = row(b"INSERT", ID, column(b"+", b"note", None), column(b"+", b"empty", b""))
UPDATE = row(b"UPDATE", column(b"+", b"id", b"2"), column(b"+", "näme".encode(), "à la carte".encode()), b"-" + ID[1:])
DELETE = row(b"DELETE", b"-" + ID[1:], table=b"a b")
SAMPLES = {
    "insert": INSERT,
    "update": UPDATE,
    "delete": DELETE,
    "no columns": row(b"INSERT"),
    "begin": b"BEGIN 5",
    "commit": b"COMMIT 5 (at 2026-11-22 10:00:00+00)",
}


BAD = {
    "a record cut short": (INSERT[:20], wf.BadLength, 0, "record"),
    "another side": (INSERT[:39] + b"?" + INSERT[40:], wf.BadTag, 39, "side"),
    "another state": (INSERT[:80] + b"?" + INSERT[81:], wf.BadTag, 80, "value"),
    "a NULL with a value": (INSERT[:80] + b"~" + INSERT[81:], wf.BadTag, 80, "value"),
    "no schema": (INSERT[:7] + b" " * 16 + INSERT[23:], wf.BadTag, 7, "table_schema"),
    "no table": (INSERT[:23] + b" " * 16 + INSERT[39:], wf.BadTag, 23, "table_name"),
    "a column without a name": (row(b"INSERT", column(b"+", b"", b"")), wf.BadTag, 40, "name"),
    "a value that is no text": (row(b"INSERT", column(b"+", b"id", b"a\xff")), wf.BadText, 81, "value"),
}


def texts(encoding: str, width: int, least: int = 1) -> SearchStrategy[str]:
    """Texts that fit: padding cannot be told from a blank at the end."""
    found = st.text(characters(encoding), min_size=least, max_size=width)
    return found.filter(lambda text: least <= len(data := text.encode(encoding)) <= width and data[-1:] != b" ")


def images(encoding: str) -> SearchStrategy[wf.TupleData]:
    cells = st.tuples(texts(encoding, 16), st.none() | texts(encoding, 30, 0), st.sampled_from(["text", "integer[]"]))
    return st.lists(cells, min_size=1, max_size=4).map(lambda cells: wf.TupleData(*zip(*cells, strict=True)))


def events(encoding: str) -> SearchStrategy[wf.Event]:
    table = {"table_schema": texts(encoding, 16), "table_name": texts(encoding, 16)}
    sides = {"new": st.none() | images(encoding), "old": st.none() | images(encoding)}
    rows = (st.builds(kind, **table, **sides) for kind in (wf.Insert, wf.Update, wf.Delete))
    return st.one_of(*rows, st.builds(wf.Begin, xid=U64), st.builds(wf.Commit, xid=U64))


SUPPORT = Support(
    format=FORMAT,
    good=INSERT,
    stream=stream(wf.Begin(xid=5), wf.Commit(xid=5, commit_time="2026-11-22 10:00:00+00")),
    samples={name: Sample(message=data, one_in=5) for name, data in SAMPLES.items()},
    bad={
        name: Bad(message=data, facts={"type": error, "message_offset": byte, "path": path})
        for name, (data, error, byte, path) in BAD.items()
    },
    events=lambda encoding: alone(events(encoding)),
    splices=[(INSERT, UPDATE), (UPDATE, DELETE), (SAMPLES["begin"], INSERT)],
    splice_step=13,
)
