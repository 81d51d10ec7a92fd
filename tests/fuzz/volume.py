"""Looks for room that was guessed too small, with volume and not variety: `python -m tests.fuzz.volume`.

The same few records many times over, and the rows of all of them, must be the rows of the few many times over. With
NUMBA_BOUNDSCHECK=1 every index is checked, and that no record takes more room than it is said to take.
`--bytes 200000000` makes one message of so many bytes of the smallest records, for every format that has batches.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import wireformat as wf
from wireformat.formats.row import load
from wireformat.grammar import lines
from wireformat.limits import MESSAGE_BATCH_CELLS, MESSAGE_BATCH_ROWS

from .. import handmade, text_samples
from ..engines import SCANS
from ..handmade import begin, cell, commit, new, old, origin, u16, u32, u64, user, xid
from ..handmade_pgoutput import NULL, TIME, binary, column, image, relation, text
from ..handmade_pgoutput import change as row_of

MANY_ROWS = MESSAGE_BATCH_ROWS + 3000
"""More than one call of a scan notes."""

MANY_CELLS = MESSAGE_BATCH_CELLS + 300_000
"""More than there is room for, however many rows there are."""

NOT_COMPARED = ("message", "record", "lsn")
"""Columns that count the messages, or that a batch has made up."""

OF_CELLS, COLUMNS = 50, 400
LONG_NAME = b"x" * 17_000
"""The name of a column; in MANY_ROWS it takes more than the 2 GiB of a column of texts."""


@dataclass(frozen=True)
class Case:
    """Records of one format and how many times over.

    join    makes one message of many records; None where each is a message
    before  messages that come first, once
    """

    format: str
    records: tuple[bytes, ...]
    times: int
    join: Callable[..., bytes] | None = None
    before: tuple[bytes, ...] = ()

    def messages(self, times: int) -> list[bytes]:
        """All messages, with the records so many times."""
        records = list(self.records) * times
        return [*self.before, *([self.join(*records)] if self.join else records)]


def _images(cells: Sequence[bytes]) -> tuple[bytes, ...]:
    """An INSERT, an UPDATE with both images and a DELETE."""
    return (
        handmade.change(b"I", b"s", b"t", new(*cells)),
        handmade.change(b"U", b"s", b"t", new(*cells), old(*cells)),
        handmade.change(b"D", b"s", b"t", old(*cells)),
    )


_EVERY_FACT = begin(1, (1 << 64) - 1, xid(1), handmade.time(b"now"), origin(-(1 << 31)), user(b"u"))
_VALUES = {
    lines.UNSIGNED: b"7",
    lines.UNSIGNED_32: b"7",
    lines.SIGNED: b"-7",
    lines.LSN: b"FFFFFFFF/FFFFFFFF",
    lines.TEXT: b"2026-11-21 01:02:03+08",
    lines.GID: b"'g'",
}


def every_line(format: str) -> tuple[bytes, ...]:
    """Each line of the format's table with all of its parts."""
    return tuple(
        line.word + b"".join(part.before + _VALUES[part.value] + part.after for part in line.parts)
        for line in load(SCANS[format].lines)
    )


_JSON = (
    b'{"table_name":"s.t","op_type":"UPDATE","columns_name":[%s],"columns_type":[%s],"columns_val":[%s],'
    b'"old_keys_name":[%s],"old_keys_type":[%s],"old_keys_val":[%s]}'
)


def _json(name: bytes, value: bytes) -> bytes:
    return _JSON % (*(b",".join([b'"%s"' % one] * OF_CELLS) for one in (name, b"a", value)), b"", b"", b"")


_TEXTS = {
    "gaussdb-text": b"table s t UPDATE: old-key:%s new-tuple:%s",
    "opengauss-test-decoding": b"table s.t: UPDATE: old-key:%s new-tuple:%s",
    "test-decoding": b"table s.t: UPDATE: old-key:%s new-tuple:%s",
}


def _text(format: str, column: bytes) -> bytes:
    return _TEXTS[format] % (column * OF_CELLS, column * OF_CELLS)


def _sql(name: bytes, value: bytes) -> bytes:
    where = b" and ".join([name + b" = " + value] * OF_CELLS)
    return b"delete from s.t where %s;insert into s.t values (%s);" % (where, b", ".join([value] * OF_CELLS))


def _of_texts() -> Iterator[tuple[str, Case]]:
    for format in SCANS:
        join = text_samples.batched if format in ("gaussdb-json", "gaussdb-text") else None
        if SCANS[format].lines:
            yield f"{format}, every line with every part", Case(format, every_line(format), MANY_ROWS // 2, join)
        rows: tuple[bytes, ...] = ()
        if format in _TEXTS:
            rows = _text(format, b" a[a]:null"), _text(format, b" \"\"\"\"[a]:''''")
        elif format == "sql-decoding":
            rows = _sql(b"a", b"null"), _sql(b'"a""b"', b"'x''y'"), b"insert into s.t values (%s);" % (b"1, " * COLUMNS)
        elif "json_changes" in SCANS[format].walk:
            rows = _json(b"a", b"null"), _json(rb"\"\"\"\"", b"'\\u0001'")
        if rows:
            yield f"{format}, cells", Case(format, rows, MANY_CELLS // (2 * OF_CELLS), join)


_BINARY = "gaussdb-binary"
_PGOUTPUT = "pgoutput"
_WIDE = relation(*[column(b"c", is_key=place == 0) for place in range(COLUMNS)])
_FORMS = {
    "times": (1184, u64(252_455_615_999_999_999)),
    "dates": (1082, u32(1)),
    "numbers": (20, u64(1 << 63)),
    "small numbers": (21, u16(1 << 15)),
    "numbers of objects": (26, u32((1 << 32) - 1)),
}
"""Binary values whose texts are the longest of their type: 9999-12-31 23:59:59.999999+00, -9223372036854775808, …"""

CASES: dict[str, Case] = {
    "smallest records": Case(_BINARY, (commit(),), MANY_ROWS, handmade.message),
    "unknown records": Case(_BINARY, (b"?",), MANY_ROWS, handmade.message),
    "every fact": Case(_BINARY, (_EVERY_FACT,), MANY_ROWS, handmade.message),
    "numbers of types": Case(
        _BINARY, _images([cell(b"", 0xFFFFFFFF, None)] * OF_CELLS), MANY_CELLS // (2 * OF_CELLS), handmade.message
    ),
    "long names of types": Case(
        _BINARY, _images([cell(b"", 1184, None)] * OF_CELLS), MANY_CELLS // (2 * OF_CELLS), handmade.message
    ),
    "names in quotes": Case(
        _BINARY, _images([cell(b'"""""a"', 25, b"")] * OF_CELLS), MANY_CELLS // (2 * OF_CELLS), handmade.message
    ),
    **dict(_of_texts()),
    "pgoutput, BEGIN and COMMIT": Case(
        _PGOUTPUT, (b"B" + u64(5) + TIME + u32(700), b"C\0" + u64(5) + u64(6) + TIME), MANY_ROWS // 2
    ),
    "pgoutput, keys": Case(_PGOUTPUT, (row_of(b"D", image(b"K", *[NULL] * COLUMNS)),), MANY_ROWS // 4, before=(_WIDE,)),
    "pgoutput, nulls": Case(
        _PGOUTPUT,
        (row_of(b"U", image(b"O", *[NULL] * COLUMNS), image(b"N", *[NULL] * COLUMNS)),),
        MANY_CELLS // COLUMNS,
        before=(_WIDE,),
    ),
    "pgoutput, a long name": Case(
        _PGOUTPUT,
        (row_of(b"I", image(b"N", NULL)), row_of(b"I", image(b"N", text(b"x")))),
        MANY_ROWS // 2,
        before=(relation(column(LONG_NAME)),),
    ),
    **{
        f"pgoutput, {name}": Case(
            _PGOUTPUT,
            (row_of(b"I", image(b"N", *[binary(value)] * OF_CELLS)),),
            MANY_CELLS // OF_CELLS,
            before=(relation(*[column(b"c", oid)] * OF_CELLS),),
        )
        for name, (oid, value) in _FORMS.items()
    },
    "pgoutput, long numerics": Case(
        _PGOUTPUT,
        # One digit and 1000 zeros that are not sent, the most that become text.
        (row_of(b"I", image(b"N", *[binary(u16(1) + u16(250) + u16(0) + u16(0) + u16(1))] * OF_CELLS)),),
        MANY_CELLS // (10 * OF_CELLS),
        before=(relation(*[column(b"c", 1700)] * OF_CELLS),),
    ),
}
"""By what is large in them."""


def check(case: Case, columns: Sequence[str] | None = None) -> int:
    """Compare the rows of all records with those of a few; returns how many there are."""
    names = [name for name in columns or wf.arrow.CHANGES.names if name not in NOT_COMPARED]
    few = pa.Table.from_batches(wf.arrow.batches(case.messages(1), case.format, engine="declaration"))
    few = few.select(names).combine_chunks().to_batches()[0]
    first = few.num_rows - len(case.records)
    done = 0
    for batch in wf.arrow.batches(case.messages(case.times), case.format, columns=columns, threads=1):
        batch.validate(full=True)
        rows = np.arange(done, done + batch.num_rows)
        rows = np.where(rows < first, rows, first + (rows - first) % len(case.records))
        assert batch.select(names).equals(few.take(pa.array(rows))), f"rows {done} to {done + batch.num_rows}"
        if "record" in batch.schema.names and case.join:
            records = np.arange(done, done + batch.num_rows) - first
            assert np.array_equal(batch["record"], np.maximum(records, 0))
        done += batch.num_rows
    assert done == first + case.times * len(case.records)
    return done


SMALLEST = {
    _BINARY: Case(_BINARY, (commit(),), 0, handmade.message),
    "gaussdb-text": Case("gaussdb-text", (b"commit",), 0, text_samples.batched),
    "gaussdb-json": Case("gaussdb-json", (b"commit",), 0, text_samples.batched),
}
"""The smallest records of the formats that have batches."""


def check_one_message(case: Case, size: int) -> int:
    """Compare the rows of one message of so many bytes of the case's records; returns how many there are.

    Raises MemoryError where that takes more memory than a message and a batch of rows several times over.
    """
    one, two = (len(case.messages(times)[0]) for times in (1, 2))
    before = _memory()
    rows = check(Case(case.format, case.records, size // (two - one), _repeated(case)), ["kind", "record", "detail"])
    taken = _memory() - before
    if taken > 4 * size + (512 << 20):
        raise MemoryError(f"{taken} bytes for a message of {size}")
    return rows


def _repeated(case: Case) -> Callable[..., bytes]:
    """The framing of the case for records that are all the same, without a list of their frames."""
    assert case.join is not None
    one, two = case.join(*case.records), case.join(*case.records * 2)
    frame = two[: len(two) - len(one)]
    return lambda *records: frame * (len(records) - 1) + one


def _memory() -> int:
    """The most bytes that this process has had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=None, help="of one message")
    parser.add_argument("cases", nargs="*", help="all, if not given")
    arguments = parser.parse_args()
    cases = CASES if arguments.bytes is None else SMALLEST
    for name in arguments.cases or cases:
        begun = time.monotonic()
        rows = check(cases[name]) if arguments.bytes is None else check_one_message(cases[name], arguments.bytes)
        sys.stdout.write(f"{name}: {rows} rows in {time.monotonic() - begun:.1f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
