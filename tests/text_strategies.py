"""Generated events of the text formats: what each can say, and anything at all; names, types and values are hostile."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import wireformat as wf

from .strategies import I32, TIMES, U64, characters, names, transaction_ends
from .strategies import events as binary_events

NUMBER_TYPES = ("tinyint", "smallint", "integer", "bigint", "oid", "real", "double precision", "numeric")
BIT_TYPES = ("bit", "bit varying")
OTHER_TYPES = (
    "text",
    '"char"',
    "character varying",
    "timestamp without time zone[]",
    "integer[]",
    "mood",
    'app."My Type"',
    '"we]ird: t"[]',
    'shop."T[x]"[]',
    '"a""b"',
    '"table"."表"',
    '"NUMERIC"',
    '"integer"',
)

HOSTILE_TEXTS = [
    "",
    "'",
    "''",
    "null",
    "'null'",
    "unchanged-toast-datum",
    "true",
    "B'101'",
    "\\",
    "\\'",
    "\\u0041",
    '"',
    "\0\x01\x1f\x7f",
    "\n\r\t\b\f",
    "' id[integer]:9 w[text]:'y",
    " new-tuple: x[integer]:1",
    " INSERT: a[integer]:1",
    "(no-tuple-data)",
    "');insert into a.b values ('",
    "BEGIN CSN: 1 first_lsn: 0/1",
    '"]}',
    "x" * 3000,
]

HOSTILE_NAMES = ["new-tuple:", "null", "a[b]:'c'", "t UPDATE: a[integer]:1", " lead", "trail ", "表", "a,b", "$1", "1"]


@cache
def texts(encoding: str = "utf-8") -> SearchStrategy[str]:
    return st.sampled_from(HOSTILE_TEXTS) | st.text(characters(encoding), max_size=20)


@cache
def hostile_names(encoding: str = "utf-8") -> SearchStrategy[str]:
    hostile = [name for name in HOSTILE_NAMES if name.encode(encoding, "ignore").decode(encoding) == name]
    return st.sampled_from(hostile) | names(encoding)


NUMBERS = st.from_regex(r"(?a)\A(-?(\d{1,30}(\.\d{0,30})?|\.\d+)(e[+-]?\d{1,3})?|NaN|-?Infinity)\Z")
BITS = st.from_regex(r"\A[01]{0,40}\Z")

FORMS: dict[str, SearchStrategy[Any]] = {
    "?number": NUMBERS,
    "?boolean": st.sampled_from("tf"),
    "?bits": BITS,
    "?null": st.none(),
    "?unchanged": st.just(wf.UNCHANGED),
}


@cache
@st.composite
def cells(draw: Callable[..., Any], format: str, encoding: str = "utf-8") -> tuple[Any, str]:
    """A value and its type."""
    if format == "sql-decoding":
        form = draw(st.sampled_from([*FORMS, "?string"]))
        return draw(FORMS.get(form, texts(encoding))), form
    kind = draw(st.integers(0, 3))
    known = {
        0: (NUMBER_TYPES, NUMBERS),
        1: (("boolean",), st.sampled_from("tf")),
        2: (BIT_TYPES, BITS),
        3: ([type for type in OTHER_TYPES if type.isascii() or encoding in ("utf-8", "gbk")], texts(encoding)),
    }
    types, values = known[kind]
    absent = st.sampled_from([None] if "json" in format else [None, wf.UNCHANGED])
    return draw(values | absent), draw(st.sampled_from(types))


@cache
@st.composite
def images(draw: Callable[..., Any], format: str, side: str, encoding: str = "utf-8") -> wf.TupleData:
    least = 1 if "json" in format else 0
    found = draw(st.lists(cells(format, encoding), min_size=least, max_size=5))
    values, types = zip(*found, strict=True) if found else ((), ())
    if format == "sql-decoding" and side == "new":
        column_names = [f"${place}" for place in range(1, len(found) + 1)]
    else:
        column_names = [draw(hostile_names(encoding)) for _ in found]
    return wf.TupleData(tuple(column_names), values, types)


@cache
def tables(format: str, encoding: str = "utf-8") -> SearchStrategy[str]:
    """Names of schemas and tables: those of gaussdb-text are bare, so neither empty nor long."""
    found = hostile_names(encoding)
    return found.filter(lambda name: 0 < len(name.encode(encoding)) < 256) if format == "gaussdb-text" else found


@cache
@st.composite
def row_changes(draw: Callable[..., Any], format: str, encoding: str = "utf-8") -> wf.RowChange:
    kind = draw(st.sampled_from([wf.Insert, wf.Update, wf.Delete]))
    sides = {wf.Insert: ["new"], wf.Update: ["new", "old"], wf.Delete: ["old"]}[kind]
    found = {side: draw(st.none() | images(format, side, encoding)) for side in sides}
    names_ = {field: draw(tables(format, encoding)) for field in ("table_schema", "table_name")}
    return kind(**names_, **found)


FACTS: dict[str, dict[type[wf.Event], dict[str, SearchStrategy[Any]]]] = {}
_PARALLEL: dict[type[wf.Event], dict[str, SearchStrategy[Any]]] = {
    wf.Begin: {
        "csn": U64,
        "first_lsn": U64,
        "xid": st.none() | U64,
        "commit_time": st.none() | TIMES,
        "origin": st.none() | I32,
    },
    wf.Commit: {"xid": st.none() | U64, "commit_time": st.none() | TIMES},
}
_ENDS: dict[str, SearchStrategy[Any]] = {"xid": st.none() | U64, "commit_time": st.none() | TIMES}
U32 = st.sampled_from([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]) | st.integers(0, 0xFFFFFFFF)
GIDS = st.sampled_from(["g", "a, txid 99", "a (at b)", "it's", "a\\b'c", "'", "\\", "\n", ""]) | st.text(
    characters("ascii")
)
_XID: dict[str, SearchStrategy[Any]] = {"xid": st.none() | U32}
_GID: dict[str, SearchStrategy[Any]] = {**_XID, "gid": GIDS}
_AT: dict[str, SearchStrategy[Any]] = {"commit_time": st.none() | TIMES}
_PREPARED_AT: dict[str, SearchStrategy[Any]] = {"prepare_time": st.none() | TIMES}
_POSTGRES: dict[type[wf.Event], dict[str, SearchStrategy[Any]]] = {
    wf.Begin: _XID,
    wf.Commit: {**_XID, **_AT},
    wf.Prepare: {**_GID, **_PREPARED_AT},
    wf.CommitPrepared: {**_GID, **_AT},
    wf.RollbackPrepared: {**_GID, **_AT},
    wf.StreamStart: _XID,
    wf.StreamStop: _XID,
    wf.StreamChange: _XID,
    wf.StreamAbort: _XID,
    wf.StreamCommit: {**_XID, **_AT},
    wf.StreamPrepare: {**_GID, **_PREPARED_AT},
    wf.Truncate: {**_XID, "tables": st.just(())},
}
_SERIAL: dict[type[wf.Event], dict[str, SearchStrategy[Any]]] = {
    wf.Begin: {"xid": st.none() | U64},
    wf.Commit: {**_ENDS, "csn": st.none() | U64},
    wf.Abort: _ENDS,
    wf.Prepare: _ENDS,
}
FACTS = {
    "gaussdb-json": _PARALLEL,
    "gaussdb-text": _PARALLEL,
    "mppdb-json": {**_SERIAL, wf.Begin: {"xid": st.none() | U64, "origin": st.none() | I32}},
    "opengauss-test-decoding": _SERIAL,
    "test-decoding": _POSTGRES,
    "sql-decoding": {
        **_SERIAL,
        wf.Begin: {"csn": st.none() | U64},
        wf.Commit: {"commit_time": st.none() | TIMES, "csn": st.none() | U64},
    },
}


@cache
def transaction_lines(format: str) -> SearchStrategy[wf.Event]:
    return st.one_of(*(st.builds(event, **facts) for event, facts in FACTS[format].items()))


@cache
def truncates(encoding: str = "utf-8") -> SearchStrategy[wf.Truncate]:
    pairs = st.tuples(hostile_names(encoding), hostile_names(encoding))
    found = st.lists(pairs, min_size=1, max_size=4).map(tuple)
    return st.builds(wf.Truncate, tables=found, restart_identity=st.booleans(), cascade=st.booleans())


@cache
@st.composite
def ddl(draw: Callable[..., Any], format: str, encoding: str = "utf-8") -> wf.Ddl:
    text = texts(encoding)
    shape = draw(st.sampled_from(["line", "TDDL", "JDDL"]))
    if shape == "TDDL":
        return wf.Ddl(sql=draw(text))
    if shape == "JDDL":
        return wf.Ddl(content=draw(st.sampled_from(["{}", '{"fmt": "A %{b}s", "b": [1, {"c": null}]}', '{"}": "}"}'])))
    content = draw(text)
    with_sql = draw(st.booleans())
    return wf.Ddl(
        lsn=draw(U64) if format == "mppdb-json" else None,
        prefix=draw(st.sampled_from(["deparse", "", "a b", "é"] if encoding == "utf-8" else ["deparse", ""])),
        relid=draw(st.integers(0, (1 << 32) - 1)),
        cmdtype=draw(st.sampled_from(["Simple", "Drop Table End", "NewPub"])),
        size=len(content.encode(encoding)) + 1,
        content=content,
        sql=draw(st.sampled_from(["DROP TABLE a", "", "SELECT ', [owner x]'\ndecode to : y"])) if with_sql else None,
        owner=draw(st.none() | st.sampled_from(["none", "omm", "o]]"])) if with_sql else None,
    )


PREFIXES = ["app", "", " ", "a, sz: 3 content:", ", sz: 5", "a\nb", "'", "message: transactional: 1 prefix: "]


@cache
@st.composite
def messages(draw: Callable[..., Any], encoding: str = "utf-8") -> wf.Message:
    prefix = draw(st.sampled_from(PREFIXES) | st.text(characters(encoding), max_size=10))
    if draw(st.booleans()):
        return wf.Message(transactional=True, prefix=prefix, size=draw(st.integers(0, 10**10 - 1)))
    return wf.Message(
        transactional=draw(st.booleans()),
        prefix=prefix,
        content=draw(texts(encoding) | st.binary(max_size=20).filter(lambda raw: not is_text(raw, encoding))),
    )


def is_text(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


@cache
@st.composite
def unknowns(draw: Callable[..., Any], encoding: str = "utf-8") -> wf.Unknown:
    raw = draw(st.sampled_from([b"Z", b"zz", b"table", b"begins", b"{a"]).filter(lambda head: head[:1] in b"Zz"))
    raw += draw(st.binary(max_size=10))
    try:
        return wf.Unknown(raw=raw, text=raw.decode(encoding))
    except UnicodeDecodeError:
        return wf.Unknown(raw=raw)


@cache
def events(format: str, encoding: str = "utf-8") -> SearchStrategy[wf.Event]:
    """Everything that a text format can say, without LSNs but for that of DDL."""
    found = [
        row_changes(format, encoding),
        row_changes(format, encoding),
        transaction_lines(format),
        unknowns(encoding),
    ]
    if not format.startswith("gaussdb-"):
        found += [truncates(encoding), messages(encoding) if format == "test-decoding" else ddl(format, encoding)]
    return st.one_of(*found)


@cache
def any_events() -> SearchStrategy[wf.Event]:
    """Events of every kind with anything in them, whether a format can say it or not."""
    wild = st.none() | texts()
    return st.one_of(
        binary_events(),
        transaction_ends(),
        *(row_changes(format) for format in FACTS),
        *(transaction_lines(format) for format in FACTS),
        truncates(),
        messages(),
        st.builds(wf.Truncate, tables=st.just((("s", "t"),)), xid=st.none() | U64),
        st.builds(wf.Message, transactional=st.booleans(), prefix=texts(), content=wild, size=st.none() | U64),
        st.builds(wf.StreamAbort, xid=st.none() | U64, subxid=st.none() | U64),
        st.builds(wf.StreamPrepare, gid=texts(), xid=st.none() | U64, prepare_time=wild),
        st.builds(wf.Abort, xid=st.none() | U64, commit_time=wild),
        st.builds(wf.Commit, csn=st.none() | U64, commit_time=wild),
        st.builds(wf.Begin, csn=U64, first_lsn=U64, commit_time=wild, origin=st.none() | I32),
        st.builds(
            wf.Ddl,
            lsn=st.none() | U64,
            sql=wild,
            content=wild,
            prefix=wild,
            relid=st.none() | st.integers(-1, 1 << 32),
            cmdtype=wild,
            size=st.none() | st.integers(0, 20),
            owner=wild,
        ),
        st.builds(wf.Unknown, raw=st.binary(max_size=20) | texts().map(str.encode)),
    )
