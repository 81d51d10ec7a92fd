"""What a fresh interpreter makes of the engine, as JSON for test_compiler.py: `-m tests.arrow.scan.probe [little]`."""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numba
import numba.core.dispatcher
import pyarrow as pa

import wireformat as wf
from wireformat.arrow.columns import completed_layouts
from wireformat.arrow.engine import faults
from wireformat.arrow.jit import compiler as compiled
from wireformat.arrow.readers.reader import FEW_TEXTS
from wireformat.arrow.scan import message_batches
from wireformat.arrow.scan.kernels import pgoutput_relations
from wireformat.arrow.written import encode
from wireformat.chunks.capture import ChunkCapture
from wireformat.chunks.summary import summarized
from wireformat.formats.registry import find_format
from wireformat.sources.splitting import Skipped, skip_messages

from ...engines import FORMAT, rows
from ...handmade import SAMPLES, commit, message, row_bodies, u16, u32, u64, user
from ...handmade_pgoutput import ALL, DESCRIBED, ROWS, binary, change, column, image, relation

_OBJECT = (
    b'{"table_name":"s.t1","op_type":"UPDATE","columns_name":["a"],"columns_type":["text"],"columns_val":["\'x\'"],'
    b'"old_keys_name":["a"],"old_keys_type":["text"],"old_keys_val":["null"]}'
)
_DDL = b'{"TDDL": "drop table s.t1"}'
OTHER_SAMPLES = {
    "gaussdb-json": [
        b"BEGIN CSN: 1 first_lsn: 0/1",
        _OBJECT,
        _OBJECT,
        b"commit xid: 3 (at 2026-11-21 01:02:03+08)",
        b"{",
    ],
    "gaussdb-text": [b"BEGIN CSN: 1 first_lsn: 0/1", b"table s t1 UPDATE: old-key: a[text]:'x' new-tuple: a[text]:1"],
    "mppdb-json": [b"BEGIN 1 ORIGIN_ID 2", _OBJECT, b"COMMIT 1 CSN 2", b"COMMIT (at"],
    "opengauss-test-decoding": [
        b"BEGIN 1",
        b"table s.t1: INSERT: a[text]:unchanged-toast-datum",
        b"COMMIT 1 CSN 2",
        _DDL,
    ],
    "pgoutput": [DESCRIBED, *(message for message, _ in ALL.values())],
    "sql-decoding": [b"BEGIN 1", b"delete from s.t1 where a = 1;insert into s.t1 values ('x', null);", b"COMMIT 1"],
    "test-decoding": [
        *(b"BEGIN 1", b"streaming change for TXN 7", b"table s.t1: INSERT: a[text]:'x'"),
        *(b"message: transactional: 1 prefix: p, sz: 1 content:a", b"PREPARE TRANSACTION 'g'", b"COMMIT 1"),
    ],
}
"""Messages of the other formats."""


_ONE = u16(1) + u16(0) + u16(0) + u16(0) + u16(7)
_BINARY = {
    16385: b"a type of the user",
    17: b"bytea",
    701: u64(0),
    1186: bytes(16),
    1700: _ONE,
    **{
        array: u32(1) + u32(0) + u32(element) + u32(1) + u32(1) + u32(len(value)) + value
        for array, element, value in ((1007, 23, u32(7)), (1231, 1700, _ONE))
    },
}
BINARY_VALUES = [
    relation(*(column(b"c%d" % oid, oid) for oid in _BINARY)),
    change(b"I", image(b"N", *map(binary, _BINARY.values()))),
]
"""A value in binary form of each group of types."""

_IMAGE = wf.TupleData(("a", "b", "c", "d"), ("1", None, r"\x00ff", '{"\xe9 "}'), ("integer", "text", "bytea", "text[]"))
_CHANGES = [wf.Insert(lsn=number, table_schema="s", table_name="t", new=_IMAGE) for number in range(FEW_TEXTS)]
TYPED = list(wf.encode([wf.Begin(lsn=1, csn=1, first_lsn=1), *_CHANGES, wf.Commit(lsn=9, xid=1)], FORMAT))
"""Messages of a transaction with rows of one table."""


LEFT_OUT = [
    *(b"BEGIN 1", b"table s.t: DELETE: a[text]:'x'", b"table s.t: INSERT: a[text]:'x' b[text]:'y'"),
    *(b"table s.t: UPDATE: old-key: a[text]:'x' new-tuple: a[text]:'x' b[text]:'y'", b"COMMIT 1"),
]
"""Old images that leave out columns."""


_BAD_EVENT = wf.Insert(lsn=1, table_schema="s", table_name="t", new=wf.TupleData(("a",), ("\xe9",), ("text",)))
BAD_BYTES = {
    format: next(iter(wf.encode([replace(_BAD_EVENT, lsn=lsn)], format, encoding="latin-1")))
    for format, lsn in ((FORMAT, 1), ("gaussdb-json", 1), ("gaussdb-text", 1), ("test-decoding", None))
} | {"pgoutput": change(b"I", image(b"N"), oid=7)}
"""For each walk that looks for faults, a message that cannot be read."""


def entry_points() -> dict[str, Any]:
    """The compiled functions that Python calls, by module and name."""
    names = [module.name for module in pkgutil.walk_packages(wf.arrow.__path__, "wireformat.arrow.")]
    modules = [importlib.import_module(name) for name in names]  # not only those that were used
    things = [thing for module in modules for thing in vars(module).values()]
    found = [one for thing in things for one in (thing.values() if isinstance(thing, dict) else [thing])]
    found = [one for one in found if isinstance(one, numba.core.dispatcher.Dispatcher)]
    return {f"{one.py_func.__module__}.{one.__name__}": one for one in found}


def use_everything() -> str:
    """Decode by every road that leads into compiled code; returns a digest of all rows."""
    messages = [
        *SAMPLES.values(),
        message(*row_bodies(50)),
        message(commit(b"?")),
        None,
        message(commit(user(b"\xff"))),
    ]
    digest = hashlib.sha256()
    with suppress(wf.DecodeError):
        wf.arrow.changes([message(commit(b"?"))], FORMAT)  # no row at all comes first: its arrays are special
    wf.arrow.changes(list(SAMPLES.values()), FORMAT, kinds=[])
    for options in (
        {},
        {"encoding": "gbk"},
        {"encoding": "latin-1"},
        {"encoding": "latin-1", "tables": ["s.*"]},
        {"tables": ["s.*", "*.t1"]},
        {"kinds": ["COMMIT"]},
    ):
        for source in (messages, pa.array(messages)):
            table = wf.arrow.changes(source, FORMAT, mode="PERMISSIVE", **options)
            digest.update(repr(rows(table)).encode())
        for columns in (["kind"], ["new"], ["types", "raw"]):
            wf.arrow.changes(messages, FORMAT, mode="PERMISSIVE", columns=columns, **options)
        digest.update(repr(list(wf.decode(messages, FORMAT, mode="PERMISSIVE", **options))).encode())
    for format, texts in OTHER_SAMPLES.items():
        digest.update(repr(rows(wf.arrow.changes(texts, format, mode="PERMISSIVE"))).encode())
        digest.update(repr(list(wf.decode(texts, format, mode="PERMISSIVE"))).encode())
    whole = [DESCRIBED, ROWS["insert"][0]]  # with every value sent, and nothing that the declaration reads
    for messages in (whole, BINARY_VALUES):
        digest.update(repr(rows(wf.arrow.changes(messages, "pgoutput"))).encode())
    for name, encoding in ((b"caf\xe9", "latin-1"), (b"\x95\x32\x82\x36", "gb18030")):  # of four bytes
        digest.update(repr(rows(wf.arrow.changes([relation(table=name)], "pgoutput", encoding=encoding))).encode())
    pieces = pa.chunked_array([[one] for one in whole], pa.binary())
    with patch.object(pgoutput_relations, "ASKED_BEFORE", 0), patch.object(message_batches, "COUNTED_BYTES", 1 << 40):
        digest.update(repr(rows(wf.Capture(pieces, "pgoutput").changes().read_all())).encode())
    for changes in (wf.arrow.changes(TYPED, FORMAT), pa.Table.from_pylist([], wf.arrow.CHANGES)):
        for copy in (changes, pa.ipc.open_stream(_as_stream(changes)).read_all()):  # memory that may be written, or not
            digest.update(repr(wf.arrow.typed(copy, "s.t", schema={"a": "integer", "c": "bytea"}).to_pylist()).encode())
    for format, messages in ((FORMAT, TYPED), ("pgoutput", whole)):
        changes = wf.arrow.changes(messages, format)
        for copy in (
            changes,
            pa.ipc.open_stream(_as_stream(changes)).read_all(),
            changes.slice(0, 0),
            changes.slice(1),
        ):
            digest.update(repr(wf.arrow.encode(copy, format).to_pylist()).encode())
    with patch.object(encode, "FEW_ROWS", 1):
        digest.update(repr(wf.arrow.encode(wf.arrow.changes(TYPED, FORMAT), FORMAT).to_pylist()).encode())
    for format, messages in ((FORMAT, TYPED), ("test-decoding", [b"BEGIN 1", b"COMMIT 1"])):
        digest.update(repr(_skipped(format, messages)).encode())
    with patch.object(faults, "FEW", 0):
        for format, bad in BAD_BYTES.items():
            digest.update(repr(rows(wf.arrow.changes([bad], format, mode="PERMISSIVE"))).encode())
    digest.update(repr(wf.Capture(TYPED, FORMAT).typed("s.t").read_all().to_pylist()).encode())
    pieces = pa.chunked_array(
        [LEFT_OUT, LEFT_OUT], pa.binary()
    )  # the second piece has columns that the first one tells
    with patch.object(completed_layouts, "FEW_LAYOUTS", 0), patch.object(message_batches, "COUNTED_BYTES", 1 << 40):
        capture = wf.Capture(pieces, "test-decoding", drop_resent=False)
        digest.update(repr(capture.typed("s.t").read_all().to_pylist()).encode())
    digest.update(repr(summarized(ChunkCapture(TYPED, FORMAT)).observed).encode())
    return digest.hexdigest()


def use_little() -> str:
    """Decode one message of one format; the digest of its rows."""
    return hashlib.sha256(repr(rows(wf.arrow.changes([b"BEGIN 1"], "test-decoding"))).encode()).hexdigest()


def _skipped(format: str, messages: list[bytes]) -> Any:
    """How far the messages of a file can be passed."""
    found = find_format(format)
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(message + found.separator for message in messages))
        file.flush()
        return skip_messages(Path(file.name), found, Skipped(0, 0), len(messages))


def _as_stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def main() -> None:
    begun = time.monotonic()
    digest = use_little() if "little" in sys.argv[1:] else use_everything()
    seconds = time.monotonic() - begun
    facts = {
        "package": wf.__path__[0],
        "folder": compiled.cache_folder(),
        "digest": digest,
        "seconds": seconds,
        "bounds_checked": bool(numba.config.BOUNDSCHECK),
        "signatures": {name: len(one.signatures) for name, one in entry_points().items()},
        "loaded": {name: sum(one.stats.cache_hits.values()) for name, one in entry_points().items()},
        "made": {name: sum(one.stats.cache_misses.values()) for name, one in entry_points().items()},
    }
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    main()
