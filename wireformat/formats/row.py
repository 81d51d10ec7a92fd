"""The row of a format: everything the package must know of it before it is loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import OptionError
from ..options import Option
from ..options.checks import one_of, shown
from ..options.table import nearest
from .signatures import PATTERNS

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
    signatures   how its messages or records begin: names in PATTERNS of formats/signatures.py, or patterns of its own
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
