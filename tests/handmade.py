"""Messages of gaussdb-binary put together byte by byte, without the package: the small ones that tests make bad."""

from __future__ import annotations

import struct

END, MORE, TIMEOUT = b"F", b"P", b"P\0\0\0\0"


def u16(number: int) -> bytes:
    return struct.pack(">H", number)


def u32(number: int) -> bytes:
    return struct.pack(">I", number)


def u64(number: int) -> bytes:
    return struct.pack(">Q", number)


def short_text(data: bytes) -> bytes:
    return u16(len(data)) + data


def long_text(data: bytes | None) -> bytes:
    return u32(0xFFFFFFFF) if data is None else u32(len(data)) + data


def cell(name: bytes, oid: int, value: bytes | None) -> bytes:
    return short_text(name) + u32(oid) + long_text(value)


def new(*cells: bytes) -> bytes:
    return b"N" + u16(len(cells)) + b"".join(cells)


def old(*cells: bytes) -> bytes:
    return b"O" + u16(len(cells)) + b"".join(cells)


def change(kind: bytes, schema: bytes, table: bytes, *images: bytes) -> bytes:
    return kind + short_text(schema) + short_text(table) + b"".join(images)


def begin(csn: int, first_lsn: int, *facts: bytes) -> bytes:
    return b"B" + u64(csn) + u64(first_lsn) + b"".join(facts)


def commit(*facts: bytes) -> bytes:
    return b"C" + b"".join(facts)


def xid(number: int) -> bytes:
    return b"X" + u64(number)


def time(text: bytes) -> bytes:
    return b"T" + long_text(text)


def origin(number: int) -> bytes:
    return b"O" + struct.pack(">i", number)


def user(name: bytes) -> bytes:
    return b"N" + long_text(name)


def heartbeat(wal_end: int, wal_flushed: int, moment: int) -> bytes:
    return b"h" + u64(wal_end) + u64(wal_flushed) + struct.pack(">q", moment)


def record(body: bytes, lsn: int = 0x10) -> bytes:
    return u32(8 + len(body)) + u64(lsn) + body


def message(*bodies: bytes, end: bytes = END) -> bytes:
    return MORE.join(record(body, 0x10 + place) for place, body in enumerate(bodies)) + end


def row_bodies(count: int) -> list[bytes]:
    """Row changes of zero to nine columns, with and without images, NULLs, quotes and unlisted types; some are bad."""
    bodies = []
    for number in range(count):
        cells = [
            cell(
                b'"C""%d"' % place if place % 3 else b"c%d" % place, 23 + 7 * place, b"v" * place if place % 4 else None
            )
            for place in range(number % 10)
        ]
        images = [[new(*cells), old(*cells[:1])], [new(*cells)], [old(*cells)], []][number % 4]
        bad = [b"?"] if number % 11 == 5 else []
        bodies.append(change(b"IUD"[number % 3 : number % 3 + 1], b"s", b"t%d" % (number % 5), *images, *bad))
    return bodies


INSERT = change(b"I", b"public", b"t", new(cell(b"a", 23, b"1"), cell(b'"B c"', 25, None)))
UPDATE = change(b"U", b"s", b"t 2", new(cell(b"a", 23, b"2"), cell(b"b", 17000, b"")), old(cell(b"a", 23, b"1")))
DELETE = change(b"D", "schéma".encode(), "表".encode(), old(cell('"ключ"'.encode(), 25, "значение".encode())))
BEGIN = begin(2357, 0xCFE5C80, xid(78108), time(b"2026-11-21 01:02:03.5+08"), origin(-1), user("usér".encode()))
COMMIT = commit(xid((1 << 64) - 1), time(b"infinity"))
HEARTBEAT = heartbeat(0xCFE5C80, 0xCFE5C00, 1_700_000_000_000)

SAMPLES = {
    "insert": message(INSERT),
    "update": message(UPDATE),
    "delete": message(DELETE),
    "no tuple": message(change(b"U", b"s", b"t")),
    "no columns": message(change(b"U", b"s", b"t", new(), old())),
    "empty texts": message(change(b"I", b"", b"", new(cell(b'""', 25, b"")))),
    "doubled quotes": message(change(b"D", b'"s"', b't"', old(cell(b'"a""b"', 0xFFFFFFFF, b"x\0y")))),
    "begin": message(BEGIN),
    "begin, bare": message(begin((1 << 64) - 1, 1 << 63)),
    "commit": message(COMMIT),
    "commit, bare": message(commit()),
    "unknown": message(b"Z\x00\xffsomething"),
    "heartbeat, framed": message(HEARTBEAT),
    "heartbeat, bare": HEARTBEAT + END,
    "batch": message(BEGIN, INSERT, HEARTBEAT, COMMIT),
    "batch, timeout": message(BEGIN, UPDATE, b"?", DELETE, COMMIT, end=TIMEOUT),
}
"""A small good message of every shape, written as the encoder writes it."""

OTHER_SPELLINGS = {
    "facts in another order": (
        message(commit(time(b"t"), user(b"u"), xid(1), origin(2))),
        message(commit(xid(1), time(b"t"), origin(2), user(b"u"))),
    ),
    "a name quoted without need": (
        message(change(b"I", b"s", b"t", new(cell(b'"plain"', 25, b"")))),
        message(change(b"I", b"s", b"t", new(cell(b"plain", 25, b"")))),
    ),
    "a name not quoted against the rule": (
        message(change(b"I", b"s", b"t", new(cell(b"Upper", 25, b""), cell(b'in"side', 25, b""), cell(b"", 25, b"")))),
        message(
            change(b"I", b"s", b"t", new(cell(b'"Upper"', 25, b""), cell(b'"in""side"', 25, b""), cell(b'""', 25, b"")))
        ),
    ),
}
"""Messages that say the same as the second one, which is what the encoder writes."""
