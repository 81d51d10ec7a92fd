"""The row of a format: everything the package must know of it before it is loaded.

Rows name the patterns by which messages and records of a format begin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import OptionError
from ..identifiers import PLAIN_NAME
from ..options import Option
from ..options.checks import one_of, shown
from ..options.table import nearest

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


ORDERS = ("parallel", "serial", "text", "pgoutput")
"""The families of orders: which record may follow which. `stream/order.py` has their table."""

SERVERS = ("any", "postgresql", "opengauss")
"""Whose type names are built in. `any`: the format sends numbers, which mean the same on both servers."""


class Scan(NamedTuple):
    """The compiled scan of a format.

    walk       what `make_scan` returned, as "module:name"
    rare       what `make_rare_walk` returned, as "module:name", if the scan leaves records to it
    binary     the function that writes values as text that the scan notes in a binary form, as "module:name"
    faults     what finds faults in records that the scan declines, as "module:name"; see arrow/scan/faults
    quoted     of a text style: whether the names of tables are quoted
    lines      of a text style: the lines around transactions that the scan reads, as "module:name"
    messages   of a text style: whether it has logical messages, as test_decoding writes them
    ddl        of a text style: the line of DDL, as "module:name", if the walk over rare records reads DDL
    prepare    where records need earlier ones: a class as "module:name"; see Preparation in arrow/scan/registry.py
    """

    walk: str
    quoted: bool = False
    lines: str | None = None
    messages: bool = False
    ddl: str | None = None
    prepare: str | None = None
    rare: str | None = None
    binary: str | None = None
    faults: str | None = None


@dataclass(frozen=True, kw_only=True)
class FormatRow:
    """One format. Code is named as "module:name" and loaded when it is used.

    name         what users call it
    sentence     what it is
    format       the Format, as "module:name"
    framing      the module that finds records in messages
    order        one of ORDERS
    types        one of SERVERS
    signatures   how its messages or records begin: names in PATTERNS of formats/row.py, or patterns of its own
    cannot_say   what it cannot say: names in DIFFERENCES of formats/differences.py
    options      the server's options that shape what is written
    scan         None: Arrow tables are made by its declaration
    has_relation_ids   whether its row changes carry the OID of their table
    is_binary    whether its messages are bytes, which SQL functions return as bytea; otherwise they are text
    Raises OptionError for what is in no table; `check_differences` does for `cannot_say`.
    """

    name: str
    sentence: str
    format: str
    framing: str
    order: str
    types: str
    signatures: tuple[str | bytes, ...]
    cannot_say: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    scan: Scan | None = None
    has_relation_ids: bool = False
    is_binary: bool = False

    def __post_init__(self) -> None:
        one_of(f"order of the format {self.name}", self.order, ORDERS)
        one_of(f"types of the format {self.name}", self.types, SERVERS)
        for signature in self.signatures:
            if not isinstance(signature, bytes):
                if signature not in PATTERNS:
                    near = nearest(signature, PATTERNS)
                    raise self._error("signatures", f"bytes or names in PATTERNS, got {shown(signature)}{near}")
                continue
            try:
                re.compile(signature)
            except re.error as error:
                raise self._error("signatures", f"regular expressions, got {signature!r}: {error}") from None

    @cached_property
    def own_patterns(self) -> tuple[bytes, ...]:
        """The signatures that are patterns of its own, not names."""
        return tuple(signature for signature in self.signatures if isinstance(signature, bytes))

    def check_differences(self) -> None:
        """Raises OptionError for a name in `cannot_say` that DIFFERENCES does not have."""
        from .differences import DIFFERENCES  # with the events, which take a part of every start

        known = [difference.name for difference in DIFFERENCES]
        for name in self.cannot_say:
            if name not in known:
                raise self._error("cannot_say", f"names in DIFFERENCES, got {shown(name)}{nearest(name, known)}")

    def _error(self, field: str, expected: str) -> OptionError:
        return OptionError(f"{field} of the format {self.name}: expected {expected}")


def load(reference: str) -> Any:
    """What a "module:name" names; raises OptionError where the reference has another form."""
    module, colon, name = reference.partition(":")
    if not (module and colon and name):
        raise OptionError(f"reference: expected module:name, got {reference!r}")
    return getattr(import_module(module), name)
