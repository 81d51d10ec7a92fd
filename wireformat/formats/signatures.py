"""What a message or record looks like, by its first bytes: for errors about one format's bytes given to another."""

from __future__ import annotations

import re

from ..errors import DecodeError

HEAD_BYTES = 600
"""How much is looked at: room for two long names."""

LOOKS_LIKE = "; it looks like "

_NAME = rb'(?:[a-z_][a-z0-9_]*|(?:"[^"]*")+)'

_CELLS = rb"[\x00-\x06].(?:[ntub]|\Z)"
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

LOOKS: tuple[tuple[re.Pattern[bytes], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern, re.DOTALL), tuple(names.split()))
    for pattern, names in (
        (rb"[\x00-\x3f].{11}\{", "gaussdb-json"),
        (rb"[\x00-\x3f].{11}table ", "gaussdb-text"),
        (rb"[\x00-\x3f].{11}(?:BEGIN CSN: |commit|COMMIT)", "gaussdb-json gaussdb-text"),
        (rb"[\x00-\x3f].{11}[BCIUDh]", "gaussdb-binary"),
        (rb"h.{24}F\Z|C[XTON]\x00", "gaussdb-binary"),
        (_PGOUTPUT, "pgoutput"),
        (rb"[BIUD]\x00", "gaussdb-binary pgoutput"),
        (rb"BEGIN CSN: |(?i:commit) (?i:xid): [0-9]", "gaussdb-json gaussdb-text"),
        (rb"BEGIN(?: [0-9]+)? ORIGIN_ID ", "mppdb-json"),
        (rb"BEGIN(?: [0-9]+)?\Z", "mppdb-json opengauss-test-decoding sql-decoding test-decoding"),
        (rb"(?:PREPARE TRANSACTION|COMMIT PREPARED|ROLLBACK PREPARED) E?'", "test-decoding"),
        (rb"message: transactional: [01] prefix: ", "test-decoding"),
        (
            rb"(?:opening|closing|streaming|aborting|committing|preparing) (?:a )?(?:streamed|change|truncate|message)",
            "test-decoding",
        ),
        (rb"COMMIT.* CSN [0-9]+\Z", "mppdb-json opengauss-test-decoding"),
        (rb"COMMIT \(at .*\) [0-9]+\Z", "sql-decoding"),
        (rb"COMMIT [0-9]+ \(at .*\)\Z", "mppdb-json opengauss-test-decoding test-decoding"),
        (rb"COMMIT [0-9]+\Z", "mppdb-json opengauss-test-decoding sql-decoding test-decoding"),
        (
            rb"(?i:commit)(?: \(at .*\))?\Z",
            "gaussdb-json gaussdb-text mppdb-json opengauss-test-decoding sql-decoding test-decoding",
        ),
        (rb"(?:ABORT|PREPARE)(?: [0-9]+)?(?: \(at .*\))?\Z", "mppdb-json opengauss-test-decoding sql-decoding"),
        (rb"sequence " + _NAME + rb"\." + _NAME + rb": transactional:[01] ", "test-decoding"),
        (rb'\{\s*"table_name"', "gaussdb-json mppdb-json"),
        (
            rb"table " + _NAME + rb"\." + _NAME + rb": (?:INSERT|UPDATE|DELETE):",
            "opengauss-test-decoding test-decoding",
        ),
        (
            rb"table " + _NAME + rb"\." + _NAME + rb".*: TRUNCATE:",
            "mppdb-json opengauss-test-decoding sql-decoding test-decoding",
        ),
        (rb"table .+ .+ (?:INSERT|UPDATE|DELETE):", "gaussdb-text"),
        (rb"insert into |delete from ", "sql-decoding"),
        (rb"prefix: .*, lsn: [0-9]", "mppdb-json"),
        (rb"message: prefix .*, relid [0-9]", "opengauss-test-decoding sql-decoding"),
    )
)
"""Patterns and the formats whose messages or records begin like that; the first that matches counts."""


def look(data: bytes | bytearray, start: int, stop: int) -> tuple[str, ...]:
    """The formats whose messages or records begin like these bytes; none where no pattern matches."""
    head = data[start : min(stop, start + HEAD_BYTES)]
    return next((names for pattern, names in LOOKS if pattern.match(head)), ())


def looks_like(data: bytes | bytearray, start: int, stop: int, name: str) -> str:
    """The other formats that bytes look like, `a or b`; nothing if they look like the format of this name, or none."""
    found = look(data, start, stop)
    return "" if name in found else " or ".join(found)


def hinted(error: DecodeError, data: bytes | bytearray, start: int, stop: int, name: str) -> DecodeError:
    """The error with a word on what the bytes look like, where that is another format."""
    found = looks_like(data, start, stop, name)
    if found:
        error.got += LOOKS_LIKE + found
    return error
