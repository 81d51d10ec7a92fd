"""How a stream is read: mode, encoding and filters, checked once for both engines."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ..errors import OptionError
from ..identifiers import split_pattern, split_table
from ..times import UNITS
from .checks import flag, one_of, shown, texts

MODES = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")
"""Spelled as in Spark: raise an error, keep as CORRUPT rows, or leave out and count."""

TABLE_STATES = ("changes", "latest")
"""What is read or written of a table: its changes, or its current rows."""

DIALECTS = ("postgresql", "opengauss")
"""The dialects of pgoutput, named after their servers."""

ENCODING_ERRORS = ("strict", "replace")

KINDS = (
    "BEGIN",
    "INSERT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "MESSAGE",
    "DDL",
    "COMMIT",
    "ABORT",
    "PREPARE",
    "COMMIT_PREPARED",
    "ROLLBACK_PREPARED",
    "STREAM_START",
    "STREAM_STOP",
    "STREAM_CHANGE",
    "STREAM_ABORT",
    "STREAM_COMMIT",
    "STREAM_PREPARE",
    "RELATION",
    "TYPE",
    "ORIGIN",
    "HEARTBEAT",
    "UNKNOWN",
    "CORRUPT",
)
"""Every kind of record, in the order in which the compiled scan numbers them."""


@dataclass(frozen=True)
class ReadOptions:
    """What to do with bad input, how to read text, and what to leave out.

    mode            FAILFAST, PERMISSIVE or DROPMALFORMED
    encoding        Python's name of the server encoding; every one that a server can have extends ASCII
    encoding_errors strict: invalid text is an error; replace: invalid bytes become U+FFFD
    heartbeat_unit  s, ms or us; None guesses by size
    tables          patterns `schema.table`, * for a whole part: row changes of other tables are left out, and other
                    tables of a TRUNCATE. Records that name no table stay, as with the servers' white-table-list
    kinds           the kinds wanted. What cannot be read is always reported, whatever the filters
    known_tables    pairs of schema and table. gaussdb-text writes names without quotes: where blanks in them leave a
                    choice, one of these tables is preferred
    exclude_users   transactions whose BEGIN carries one of these names are left out
    skip_empty_xacts    transactions that the other filters, except kinds, leave empty are left out
    strict          raise OrderError, whatever the mode, at a record that is out of order (docs/order.md)
    dialect         postgresql or opengauss: whose `pgoutput` it is; ignored by other formats
    Raises OptionError.
    """

    mode: str = "FAILFAST"
    encoding: str = "utf-8"
    encoding_errors: str = "strict"
    heartbeat_unit: str | None = None
    tables: tuple[tuple[str | None, str | None], ...] | None = None
    kinds: frozenset[str] | None = None
    known_tables: frozenset[tuple[str, str]] = frozenset()
    exclude_users: frozenset[str] = frozenset()
    skip_empty_xacts: bool = False
    strict: bool = False
    dialect: str = "postgresql"

    @classmethod
    def check(
        cls,
        *,
        mode: str = "FAILFAST",
        encoding: str = "utf-8",
        encoding_errors: str = "strict",
        heartbeat_unit: str | None = None,
        tables: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        known_tables: Iterable[str] | None = None,
        exclude_users: Iterable[str] | None = None,
        skip_empty_xacts: bool = False,
        strict: bool = False,
        dialect: str = "postgresql",
    ) -> ReadOptions:
        """Returns the checked options."""
        known = () if known_tables is None else texts("known_tables", known_tables)
        return cls(
            mode=one_of("mode", mode, MODES),
            encoding=_checked_encoding(encoding),
            encoding_errors=one_of("encoding_errors", encoding_errors, ENCODING_ERRORS),
            heartbeat_unit=None if heartbeat_unit is None else one_of("heartbeat_unit", heartbeat_unit, tuple(UNITS)),
            tables=_checked_tables(tables),
            kinds=_checked_kinds(kinds),
            known_tables=frozenset(map(_known_table, known)),
            exclude_users=frozenset(() if exclude_users is None else texts("exclude_users", exclude_users)),
            skip_empty_xacts=flag("skip_empty_xacts", skip_empty_xacts),
            strict=flag("strict", strict),
            dialect=one_of("dialect", dialect, DIALECTS),
        )

    @property
    def heartbeat_factor(self) -> int:
        """The microseconds of one heartbeat unit; 0: guess it."""
        return UNITS[self.heartbeat_unit] if self.heartbeat_unit else 0

    def filtered(self, *, tables: Iterable[str] | None = None, kinds: Iterable[str] | None = None) -> ReadOptions:
        """Returns the same options with these filters, as users give them; raises OptionError."""
        return replace(self, tables=_checked_tables(tables), kinds=_checked_kinds(kinds))

    def all_kinds(self) -> ReadOptions:
        """The same options for one that looks at every kind of record itself."""
        return replace(self, kinds=None)

    def keeps(self, kind: str, table: tuple[str, str] | None) -> bool:
        """Whether the filters keep a record of this kind and, if it names one, of this table."""
        if self.kinds is not None and kind not in self.kinds and kind != "CORRUPT":
            return False
        return table is None or self.keeps_table(table)

    def keeps_table(self, table: tuple[str, str]) -> bool:
        """Whether the filters keep the rows of a table, given as schema and name."""
        if self.tables is None:
            return True
        schema, name = table
        return not self._patterns.isdisjoint(((schema, name), (schema, None), (None, name), (None, None)))

    @cached_property
    def _patterns(self) -> frozenset[tuple[str | None, str | None]]:
        """The patterns of `tables`."""
        return frozenset(self.tables or ())


_SHIFTS = r"\u0041 +AEE- ~{!!~} =41 %41" + "\x1b$B!!\x1b(B \x1b$)A\x0e!!\x0f.xn--mnchen-3ya"
"""ASCII that means something else in encodings that do not extend it, though each of its characters alone may not."""


def _checked_encoding(encoding: str) -> str:
    """Returns the codec's name. ASCII must be itself in both directions: utf-8-sig writes a mark before each text, and
    mac-arabic has second codes for quotes and digits, which would not be seen as such."""
    name, plain = str(encoding), "".join(map(chr, range(128)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of codecs that find the probe odd
        try:
            name = codecs.lookup(encoding).name
            extends_ascii = all(
                text.encode("ascii").decode(name) == text and text.encode(name) == text.encode("ascii")
                for text in (plain, _SHIFTS)
            )
        except (LookupError, TypeError, ValueError, AssertionError):
            extends_ascii = False
    if not extends_ascii:
        raise OptionError(
            f"option encoding: expected a Python encoding that extends ASCII, as all servers' do; got {shown(encoding)}"
        )
    return name


def _checked_tables(tables: Iterable[str] | None) -> tuple[tuple[str | None, str | None], ...] | None:
    return None if tables is None else tuple(map(_pattern, texts("tables", tables)))


def _checked_kinds(kinds: Iterable[str] | None) -> frozenset[str] | None:
    return None if kinds is None else frozenset(one_of("kinds", kind, KINDS) for kind in texts("kinds", kinds))


@lru_cache(maxsize=1 << 12)
def _pattern(text: str) -> tuple[str | None, str | None]:
    try:
        return split_pattern(text)
    except ValueError as error:
        raise OptionError(f"option tables: {error}") from None


def _known_table(text: str) -> tuple[str, str]:
    try:
        return split_table(text)
    except ValueError as error:
        raise OptionError(f"option known_tables: {error}") from None
