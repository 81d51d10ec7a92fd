"""How messages and records of the formats begin: the patterns that the rows of formats name."""

from __future__ import annotations

import re
from functools import cache

from ..identifiers import PLAIN_NAME

HEAD_BYTES = 600
"""How much is looked at: room for two long names."""

_NAME = rb"(?:" + PLAIN_NAME.encode() + rb'|(?:"[^"]*")+)'

MOST_HIGH_BYTE = 6
"""A row image of pgoutput whose number of columns has a higher first byte is not recognised as one."""

_CELLS = rb"[\x00-\x%02x].(?:[ntub]|\Z)" % MOST_HIGH_BYTE
_PGOUTPUT = b"|".join(
    (
        rb"w.{24}[BCORYIUDTMSEcAbPKrpL]",
        rb"k.{16}[\x00\x01]\Z",
        rb"(?!B.{16}[TON]\x00\x00\x00)B\x00(?:.{19}|.{23}|.{31})\Z",
        rb"C\x00\x00.{23}\Z|c.{4}\x00\x00.{23}\Z",
        rb"R(?:.{4})?.{4}[^\x00]{0,63}\x00[^\x00]{1,63}\x00[dnfi]",
        rb"I(?:.{4})?.{4}N" + _CELLS,
        rb"U(?:.{4})?.{4}[KON]" + _CELLS,
        rb"D(?:.{4})?.{4}[KO]" + _CELLS,
        rb"Y(?:.{4})?.{4}[^\x00]{0,63}\x00[^\x00]{1,63}\x00\Z",
        rb"O\x00.{7}[^\x00]*\x00\Z",
        rb"T(?:.{4})?\x00.{3}[\x00-\x03]",
        rb"M(?:.{4})?[\x00\x01]\x00.{7}[^\x00]*\x00",
        rb"S.{4}[\x00\x01]\Z|E\Z|A(?!BORT).{8}\Z|A.{24}\Z",
        rb"[bPKrp]\x00.{27,37}[^\x00]*\x00\Z",
        rb"L\x00\x00.{7}[^\x00]*\x00",
    )
)
"""In or out of an envelope; where it says a transaction, its number may stand before the relation's. The first byte of
an LSN is 0: no log is longer than 2^56 bytes."""

PATTERNS: dict[str, bytes] = {
    "batched json": rb"[\x00-\x3f].{11}\{",
    "batched table": rb"[\x00-\x3f].{11}table ",
    "batched line": rb"[\x00-\x3f].{11}(?:BEGIN CSN: |commit|COMMIT)",
    "batched binary": rb"[\x00-\x3f].{11}[BCIUDh]",
    "binary end": rb"h.{24}F\Z|C[XTON]\x00",
    "pgoutput": _PGOUTPUT,
    "binary row": rb"[BIUD]\x00",
    "parallel line": rb"BEGIN CSN: |(?i:commit) (?i:xid): [0-9]",
    "begin with origin": rb"BEGIN(?: [0-9]+)? ORIGIN_ID ",
    "begin": rb"BEGIN(?: [0-9]+)?\Z",
    "prepared": rb"(?:PREPARE TRANSACTION|COMMIT PREPARED|ROLLBACK PREPARED) E?'",
    "message": rb"message: transactional: [01] prefix: ",
    "streamed": rb"(?:opening|closing|streaming|aborting|committing|preparing) (?:a )?"
    rb"(?:streamed|change|truncate|message)",
    "commit with csn": rb"COMMIT.* CSN [0-9]+\Z",
    "commit and csn": rb"COMMIT \(at .*\) [0-9]+\Z",
    "commit at a time": rb"COMMIT [0-9]+ \(at .*\)\Z",
    "commit": rb"COMMIT [0-9]+\Z",
    "bare commit": rb"(?i:commit)(?: \(at .*\))?\Z",
    "abort or prepare": rb"(?:ABORT|PREPARE)(?: [0-9]+)?(?: \(at .*\))?\Z",
    "sequence": rb"sequence " + _NAME + rb"\." + _NAME + rb": transactional:[01] ",
    "json row": rb'\{\s*"table_name"',
    "quoted row": rb"table " + _NAME + rb"\." + _NAME + rb": (?:INSERT|UPDATE|DELETE):",
    "truncate": rb"table " + _NAME + rb"\." + _NAME + rb".*: TRUNCATE:",
    "unquoted row": rb"table .+ .+ (?:INSERT|UPDATE|DELETE):",
    "statement": rb"insert into |delete from ",
    "mppdb ddl": rb"prefix: .*, lsn: [0-9]",
    "serial ddl": rb"message: prefix .*, relid [0-9]",
}
"""How messages or records begin, by the names that rows of formats use; the first that matches counts."""


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.DOTALL)


def matches(pattern: bytes, head: bytes | bytearray) -> bool:
    """Whether the first bytes of a message or record match a pattern."""
    return _compiled(pattern).match(head) is not None


def first_pattern(head: bytes | bytearray) -> str | None:
    """The name of the first of PATTERNS that matches."""
    found = _any_pattern().match(head)
    return None if found is None or found.lastindex is None else _NAMES[found.lastindex - 1]


_NAMES = tuple(PATTERNS)


@cache
def _any_pattern() -> re.Pattern[bytes]:
    """All patterns in one, each a group: bad records are many in a bad stream, and each asks what it looks like."""
    return re.compile(b"|".join(b"(%b)" % pattern for pattern in PATTERNS.values()), re.DOTALL)
