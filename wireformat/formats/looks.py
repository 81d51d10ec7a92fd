"""What a message or record looks like, by its first bytes: for errors about one format's bytes given to another."""

from __future__ import annotations

import re

from ..errors import DecodeError

_HEAD_BYTES = 600
"""How much is looked at: room for two long names."""

_NAME = rb'(?:[a-z_][a-z0-9_]*|(?:"[^"]*")+)'

LOOKS: tuple[tuple[re.Pattern[bytes], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern, re.DOTALL), tuple(names.split()))
    for pattern, names in (
        (rb"[\x00-\x3f].{11}\{", "gaussdb-json"),
        (rb"[\x00-\x3f].{11}table ", "gaussdb-text"),
        (rb"[\x00-\x3f].{11}(?:BEGIN CSN: |commit|COMMIT)", "gaussdb-json gaussdb-text"),
        (rb"[\x00-\x3f].{11}[BCIUDh]", "gaussdb-binary"),
        (rb"h.{24}F\Z|C[XTON]\x00", "gaussdb-binary"),
        (rb"w.{24}[BCORYIUDTMSEcAbPKrp]|R\x00.{3}[^\x00]{0,63}\x00[^\x00]{1,63}\x00[dnfi]", "pgoutput"),
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


def looks_like(data: bytes | bytearray, start: int, stop: int, name: str) -> str:
    """The other formats that bytes look like, `a or b`; nothing if they look like the format of this name, or none."""
    head = data[start : min(stop, start + _HEAD_BYTES)]
    found = next((names for pattern, names in LOOKS if pattern.match(head)), ())
    return "" if name in found else " or ".join(found)


def hinted(error: DecodeError, data: bytes | bytearray, start: int, stop: int, name: str) -> DecodeError:
    """The error with a word on what the bytes look like, where that is another format."""
    found = looks_like(data, start, stop, name)
    if found:
        error.got += f"; it looks like {found}"
    return error
