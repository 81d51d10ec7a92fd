"""Records of which a stream may consist are read by compiled code: their declaration takes a hundred times longer."""

from __future__ import annotations

from typing import Any

import pytest

from wireformat.arrow.engine.scanner import Scanner
from wireformat.formats.registry import find_format
from wireformat.options import ReadOptions

from ... import handmade, text_samples
from ... import handmade_pgoutput as hand
from ...engines import MODES, agree
from ...handmade import u32, u64
from .small_limits import shrink

SERIAL = ("mppdb-json", "opengauss-test-decoding", "sql-decoding", "test-decoding")

GAUSSDB_SERIAL = ("mppdb-json", "opengauss-test-decoding", "sql-decoding")


ODD_VALUES = (
    *(b"", b"01", b"-", b"+1", b"1.", b".5", b"1e", b"1e+", b"1E-5", b"-0", b"0x1", b"NaN", b"Infinity", b"-Infinity"),
    *(
        b"truE",
        b"True",
        b"nulls",
        b"[1,]",
        b"[,1]",
        b"[1 2]",
        b"[}",
        b"{]",
        b"[",
        b'"',
        b'"\\',
        b'"\\"',
        b"'a'",
        b"\xff",
    ),
    *(b'"\\q"', b'"\\u12"', b'"\\u12G4"', b'"\\ud800"', b'"a\tb"', b'"a\0b"', b'"\xff"', b"\x0b1", b"\xa01"),
)


def ddl_line(format: str, content: bytes, after: bytes = b"", prefix: bytes = b"p", size: int | None = None) -> bytes:
    """One of openGauss's lines of DDL."""
    length = str(len(content) + 1 if size is None else size).encode()
    if format == "mppdb-json":
        return b"prefix: %s, lsn: 21, relid 3, cmdtype: w, size: %s, content: %s%s" % (prefix, length, content, after)
    after = after.replace(b"decode to:", b"decode to :")
    return b"message: prefix %s, relid 3, cmdtype: w, sz: %s content: %s%s" % (prefix, length, content, after)


def ddl_records(format: str) -> list[bytes]:
    """Records of DDL that the scan reads."""
    statement = b"\ndecode to: CREATE TABLE a (b text)"
    return [
        ddl_line(format, b"words"),
        ddl_line(format, b"words", statement),
        ddl_line(format, b"words, with [brackets]", statement + b", [owner me]"),
        ddl_line(format, b"", b"\ndecode to: , [owner ]", prefix=b""),
        ddl_line(format, b"a\ndecode to: b", b"\ndecode to: c, [owner d], [owner e]]"),
        ddl_line(format, "Käufer".encode(), "\ndecode to: Käufer, [owner ü]".encode()),
        b'{"TDDL": "DROP TABLE a"}',
        b'{"TDDL": ""}',
        b'{"JDDL": {}}',
        b'{"JDDL": {"fmt": "DROP TABLE a", "b": [1, -2.5e+7, 0, true, false, null, [], {"c": {}}]} \t} \n',
        b'{"JDDL": { "it\'s": "\\"\\\\\\/\\b\\u00E4" , "b" :[ "K\xc3\xa4ufer" , {} ] }}',
        '{"TDDL": "COMMENT ON TABLE \\"Käufer\\" IS \'it\'\'s \\u0007\\\\ \\n\'" \n}'.encode(),
    ]


MANY = [*range(20_000, 20_300), *range(1 << 20, 90 << 20, 1 << 20)]
"""Numbers of relations; many differ by multiples of a power of two."""

SCANNED: dict[str, tuple[str, list[bytes]]] = {
    "heartbeats in batches": ("gaussdb-binary", [handmade.message(handmade.HEARTBEAT, handmade.INSERT)]),
    "bare heartbeats": ("gaussdb-binary", [handmade.HEARTBEAT + handmade.END]),
    "keepalives": ("pgoutput", [hand.keepalive(5, 0, 0), hand.keepalive(1 << 63, -1, 1)]),
    "prepared transactions": (
        "pgoutput",
        [hand.ALL[name][0] for name in ("begin prepare", "prepare", "commit prepared", "rollback prepared")],
    ),
    "origins": ("pgoutput", [b"O" + u64(1 << 63 | 7) + name + b"\0" for name in (b"", b"node_a", "köln".encode())]),
    "types": ("pgoutput", [b"Y" + u32(oid) + b"public\0mood\0" for oid in (5, 16_500, (1 << 32) - 1)]),
    "truncates of one table": (
        "pgoutput",
        [hand.DESCRIBED, *(b"T" + u32(1) + bytes([flags]) + hand.DESCRIBED[1:5] for flags in range(4))],
    ),
    "truncates of many tables": (
        "pgoutput",
        [
            hand.DESCRIBED,
            *(hand.relation(hand.column(b"id", 23), oid=oid, table=b"t%d" % oid) for oid in MANY),
            *(b"T" + u32(len(some)) + b"\1" + b"".join(map(u32, some)) for some in (MANY[:2], MANY, MANY[::-1])),
        ],
    ),
    **{
        f"truncates of {format}": (
            format,
            [
                b"table " + table + b": TRUNCATE:" + flags
                for table in (
                    *(b"public.orders", b'"My shop"."Or""ders"', '"Käufer".t'.encode()),
                    *(
                        b"public.orders, s.t",
                        b'"a, b"."c: TRUNCATE:", "Or""ders"."x, ""y"", z"',
                        b"a.b, " * 12 + b"a.b",
                    ),
                    '"Käufer".t, s.t'.encode(),
                )
                for flags in (b" (no-flags)", b" restart_seqs", b" cascade", b" restart_seqs cascade")
            ],
        )
        for format in SERIAL
    },
    **{f"DDL of {format}": (format, ddl_records(format)) for format in GAUSSDB_SERIAL},
    "streamed transactions": (
        "pgoutput",
        [
            hand.start(5),
            *(hand.streamed(hand.ALL[name][0]) for name in ("relation", "insert", "message", "truncate", "type")),
            hand.STOP,
            hand.start(5, is_first=False),
            hand.streamed(hand.ALL["insert"][0]),
            *(hand.STOP, hand.stream_abort(5, 7), hand.stream_commit(5)),
            *(hand.ALL[name][0] for name in hand.ALL if name.startswith("stream ") or name in ("insert", "relation")),
        ],
    ),
    "logical messages": ("pgoutput", [hand.ALL[name][0] for name in hand.ALL if name.startswith("message")]),
}


def left_to_the_declaration(messages: list[bytes], format: str, **options: Any) -> int:
    scanner = Scanner(find_format(format), ReadOptions.check(**options))
    return sum(len(scanned.events) for scanned in scanner.scan(messages))


@pytest.mark.parametrize("name", SCANNED)
def test_the_scan_reads_them(name: str) -> None:
    format, messages = SCANNED[name]
    assert left_to_the_declaration(messages, format) == 0
    answer = agree(messages, format=format)
    assert len(answer.events) >= len(messages)


@pytest.mark.parametrize("name", SCANNED)
@pytest.mark.parametrize(
    "options",
    [
        {"kinds": ["HEARTBEAT", "MESSAGE"]},
        {"kinds": ["BEGIN"]},
        {"tables": []},
        {"tables": ["public.mood"]},
        {"tables": ["*.orders"], "kinds": ["TRUNCATE", "TYPE"]},
        {"encoding": "gbk"},
    ],
    ids=str,
)
def test_filters_and_encodings(name: str, options: dict[str, Any]) -> None:
    format, messages = SCANNED[name]
    agree(messages, format=format, **options)


CONTENTS = [
    b"",
    b'{"order": 1}',
    '{"stadt": "Zürich"}'.encode(),
    "订单".encode("gbk"),
    b"\xff\xfe\x00\x01\x7f\x80\x9a\xaf",
    bytes(range(256)) * 300,
]


def logical_message(prefix: bytes, content: bytes, flag: int = 1) -> bytes:
    return b"M" + bytes([flag]) + u64(1 << 63 | 7) + prefix + b"\0" + u32(len(content)) + content


@pytest.mark.parametrize("errors", ["strict", "replace"])
@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "latin-1"])
def test_contents_of_logical_messages(encoding: str, errors: str) -> None:
    """Text stays text; other bytes are `\\x` and digits, whatever is done with bad text elsewhere."""
    messages = [
        logical_message(prefix, content, flag)
        for prefix in (b"", b"outbox", "präfix".encode(), b"\xff")
        for content in CONTENTS
        for flag in (0, 1)
    ]
    answer = agree(messages, format="pgoutput", encoding=encoding, encoding_errors=errors, mode="PERMISSIVE")
    assert len(answer.events) == len(messages)
    contents = [event.content for event in answer.events[: 2 * len(CONTENTS) : 2]]  # type: ignore[attr-defined]
    if encoding == "utf-8":
        assert contents == [*(content.decode() for content in CONTENTS[:3]), *CONTENTS[3:]]
        assert left_to_the_declaration(messages[: 6 * len(CONTENTS)], "pgoutput") == 0


def of_block(message: bytes) -> bytes:
    """A message with a transaction id."""
    return message[:1] + hand.BLOCK_XID + message[1:]


def test_origins_types_and_truncates_in_blocks() -> None:
    _, (_, *truncates) = SCANNED["truncates of one table"]
    messages = [*map(of_block, truncates), *SCANNED["origins"][1], *map(of_block, SCANNED["types"][1])]
    block = [hand.DESCRIBED, hand.start(800), *messages, hand.STOP]
    assert left_to_the_declaration(block, "pgoutput") == 0
    agree(block, format="pgoutput")
    agree(
        [hand.start(800), of_block(hand.DESCRIBED), *messages, hand.STOP, truncates[0]],
        format="pgoutput",
        mode="PERMISSIVE",
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dialect", ["postgresql", "opengauss"])
@pytest.mark.parametrize("name", ["origins", "types", "truncates of one table"])
def test_records_that_are_cut_or_have_more_bytes(name: str, dialect: str, mode: str) -> None:
    _, messages = SCANNED[name]
    for message in messages:
        damaged = [*(message[:stop] for stop in range(len(message))), message + b"\0", message + b"x"]
        agree([messages[0], *damaged, message], format="pgoutput", dialect=dialect, mode=mode)
    other = [b"T" + u32(2) + b"\0" + messages[0][1:5] * 2, b"T" + u32(1) + b"\4" + messages[0][1:5]]
    nameless = b"Y" + u32(5) + b"\0mood\0"
    agree(
        [messages[0], *other, b"T" + u32(1) + b"\0" + u32(77), nameless], format="pgoutput", dialect=dialect, mode=mode
    )


@pytest.mark.parametrize("rows", [3, 50, 1000])
@pytest.mark.parametrize("name", ["truncates of many tables", *(f"truncates of {format}" for format in SERIAL)])
def test_rows_of_a_truncate_that_do_not_fit(name: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They all come in one step, or from the declaration."""
    shrink(monkeypatch, MESSAGE_BATCH_ROWS=rows)
    format, messages = SCANNED[name]
    answer = agree([*messages, *messages[-2:]], format=format)
    assert len(answer.events) == len(messages) + 2
    agree(messages, format=format, tables=["*.t", "public.t20001"])


def test_truncates_of_tables_that_are_not_known() -> None:
    _, (described, *messages) = SCANNED["truncates of many tables"]
    number = described[1:5]
    for numbers in (number + u32(7), u32(7) + number, number + u32(7) + number, number * 2 + b"\0", b""):
        for count in (0, 1, 2, 3, 1 << 31, (1 << 32) - 1):
            record = b"T" + u32(count) + b"\0" + numbers
            agree([described, record, *messages], format="pgoutput", mode="PERMISSIVE")
            agree(
                [described, hand.start(800), of_block(record), hand.STOP, record], format="pgoutput", mode="PERMISSIVE"
            )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("format", SERIAL)
def test_truncates_that_are_odd(format: str, mode: str) -> None:
    _, messages = SCANNED[f"truncates of {format}"]
    for message in messages[::5]:
        damaged = [*(message[:stop] for stop in range(1, len(message))), message + b" ", message + b" cascade"]
        agree([message, *damaged, message], format=format, mode=mode)
    odd = [
        b"table a.b,c.d: TRUNCATE: (no-flags)",
        b"table a.b, c.d, : TRUNCATE: (no-flags)",
        b"table a.b, c.d, e: TRUNCATE: (no-flags)",
        b"table a.b, c.d: e.f: TRUNCATE: (no-flags)",
        b'table a.b, "c".d", e.f: TRUNCATE: (no-flags)',
        b"table a.b, \xff.d: TRUNCATE: cascade",
        b"table a.b: TRUNCATE: cascade restart_seqs",
        b"table a.b: TRUNCATE:",
        b"TABLE a.b: TRUNCATE: cascade",
        b"table a.b.c: TRUNCATE: cascade",
        b"table a: TRUNCATE: cascade",
        b"table a.b: TRUNCATE: (no-flags) cascade",
        b"table \xff.b: TRUNCATE: cascade",
        b'table "\xff".b: TRUNCATE: cascade',
    ]
    agree([messages[0], *odd, messages[0]], format=format, mode=mode)
    agree([messages[0], *odd, *messages], format=format, mode=mode, encoding="gbk", tables=["a.b", "*.orders"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("format", GAUSSDB_SERIAL)
def test_ddl_that_is_odd(format: str, mode: str) -> None:
    good = ddl_records(format)
    for message in good:
        damaged = [*(message[:stop] for stop in range(1, len(message))), message + b" ", message + b"}"]
        agree([message, *damaged, message], format=format, mode=mode)
    line = good[2]
    odd = [
        *(
            ddl_line(format, b"words", b"\ndecode to: a", size=size)
            for size in (0, 1, 5, 7, 99, 10**17, 10**19, 10**30)
        ),
        ddl_line(format, b"words", b"\ndecode to: a, [owner b"),
        ddl_line(format, b"words", b"\ndecode to: ]"),
        ddl_line(format, b"words", prefix=b"a, b"),
        ddl_line(format, b"words", prefix=b"a, relid x"),
        *(line.replace(b"relid 3", b"relid " + number) for number in (b"03", b"", b"-1", b"4294967295", b"4294967296")),
        line.replace(b"lsn: 21", b"lsn: 18446744073709551615"),
        line.replace(b"lsn: 21", b"lsn: 18446744073709551616"),
        line.replace(b"relid", b"RELID"),
        line.upper(),
        line.replace(b"cmdtype: w", b"cmdtype: "),
        ddl_line(format, b"\xff", b"\ndecode to: \xff"),
        b'{"TDDL":"DROP TABLE a"}',
        b'{"TDDL" : "DROP TABLE a"}',
        b'{"TDDL":  "DROP TABLE a"}',
        b'{"tddl": "DROP TABLE a"}',
        b'{"TDDL": "a\tb"}',
        b'{"TDDL": "a\\tb\\/\\u00e4"}',
        b'{"TDDL": "\xff"}',
        b'{"TDDL": "a\\q"}',
        b'{"TDDL": "a", "b": 1}',
        b'{"JDDL":{}}',
        b'{"jddl": {}}',
        b'{"JDDL": []}',
        b'{"JDDL": {}, "a": 1}',
        b'{"JDDL": {"a": %s}}' % (b"[" * 70 + b"]" * 70),
        *(b'{"JDDL": {"a": %s}}' % value for value in ODD_VALUES),
        *(
            b'{"JDDL": {%s}}' % pairs
            for pairs in (b'"a"', b'"a":1,', b',"a":1', b'"a" 1', b"1:1", b'"a":1 "b":2', b"]")
        ),
        b"message: transactional: 1 prefix: p, sz: 1 content:a",
        b'{"T',
        b'{"',
        b"prefix: p",
        b"message: prefix p",
    ]
    for message in odd:
        agree([good[0], message, good[1]], format=format, mode=mode)
    agree([good[0], *odd, *good], format=format, mode=mode, encoding="gbk")
    agree([good[0], *odd, *good], format=format, mode=mode, encoding_errors="replace")
    agree([good[0], *odd, *good], format=format, mode=mode, kinds=["BEGIN"])
    agree([good[0], *odd, *good], format=format, mode=mode, kinds=["DDL"], tables=["a.b"])


@pytest.mark.parametrize("format", GAUSSDB_SERIAL)
def test_ddl_in_gbk(format: str) -> None:
    sql = "COMMENT ON TABLE 表誠 IS '誠'"  # its second byte is that of a backslash
    line = ddl_line(
        format, "表誠".encode("gbk"), f"\ndecode to: {sql}, [owner 誠]".encode("gbk"), prefix="誠".encode("gbk")
    )
    messages = [line, b'{"TDDL": "' + sql.encode("gbk") + b'"}', line]
    for mode in MODES:
        agree(messages, format=format, mode=mode, encoding="gbk")


def test_logical_messages_in_blocks() -> None:
    """The scan reads those that have a transaction id; one without ends the block, as the declaration must see."""
    streamed = b"M" + hand.BLOCK_XID + logical_message(b"p", b"content")[1:]
    block = [hand.start(800), streamed, streamed, hand.STOP, logical_message(b"p", b"c")]
    assert left_to_the_declaration(block, "pgoutput") == 0
    assert [getattr(event, "xid", None) for event in agree(block, format="pgoutput").events] == [
        800,
        801,
        801,
        None,
        None,
    ]
    broken = [hand.start(800), streamed, logical_message(b"p", b"c", 0), logical_message(b"q", b"d"), *block]
    assert [event.kind for event in agree(broken, format="pgoutput").events][-1] == "MESSAGE"


AROUND: dict[str, list[bytes]] = {
    "gaussdb-binary": [
        handmade.message(
            *(handmade.BEGIN, handmade.HEARTBEAT, handmade.INSERT, handmade.HEARTBEAT[:-1], handmade.INSERT),
            *(b"?", handmade.HEARTBEAT, handmade.HEARTBEAT + b"x", handmade.COMMIT, handmade.HEARTBEAT),
        ),
        handmade.HEARTBEAT + handmade.END,
        handmade.HEARTBEAT,
        handmade.message(handmade.BEGIN, handmade.COMMIT),
    ],
    "pgoutput": [hand.DESCRIBED, *(message for _ in range(3) for message, _ in hand.ALL.values()), b"k", b"M", b"P\0"],
    "test-decoding": [
        b"BEGIN 5",
        b"message: transactional: 0 prefix: p, sz: 1 content:a",
        b"table s.t: INSERT: a[text]:'x'",
        b"message: transactional: 0 prefix: p, sz: 2 content:a",
        b"PREPARE TRANSACTION 'g'",
        b"COMMIT 5 (at 2026-11-21 01:02:03+00)",
    ],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "kinds", [None, ["INSERT", "COMMIT"], ["HEARTBEAT", "MESSAGE", "PREPARE"], ["UPDATE"]], ids=str
)
@pytest.mark.parametrize("format", AROUND)
def test_rows_around_them(format: str, kinds: list[str] | None, mode: str) -> None:
    """Rows and details move where some of them are left out, or cannot be read."""
    for messages in (AROUND[format] * 3, AROUND[format][:1] * 5 + AROUND[format][1:2]):
        agree(messages, format=format, mode=mode, kinds=kinds)


def test_contents_that_are_longer_in_digits_than_the_scratch() -> None:
    """With few cells for small records, a scan keeps less text for a large one."""
    contents = [bytes(range(256)) * size for size in (1, 40, 4, 1000)]
    messages = [logical_message(b"p", content) for content in contents]
    assert [event.content for event in agree(messages, format="pgoutput").events] == contents  # type: ignore[attr-defined]


@pytest.mark.parametrize("format", ["gaussdb-json", "gaussdb-text"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_only_a_text_without_bytes_is_left_to_the_declaration(format: str, place: int) -> None:
    """The declaration once read all that followed in the message, which took a hundred times as long."""
    texts = [b"BEGIN CSN: 5 first_lsn: 0/1", b"commit xid: 7"]
    messages = [text_samples.batched(*texts[:place], b"", *texts[place:]), text_samples.batched(b"")]
    scanner = Scanner(find_format(format), ReadOptions())
    read = [events for scanned in scanner.scan(messages) for events in scanned.events.values()]
    assert [len(events) for events in read] == [1, 1]
    for mode in MODES:
        assert len(agree(messages, format=format, mode=mode).events) == 4
    agree([messages[1][:-1], messages[0][:-1], messages[0] + b"x"], format=format, mode="PERMISSIVE")
