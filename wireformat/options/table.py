"""Every option of GaussDB's and openGauss's logical decoding, one per row; the kinds of values, and checks of names.

Source: GaussDB document "Logical Decoding Options"; openGauss's documentation of the same functions. The page of the
document leaves the name of auto-advance blank: the text is that of the option of this name.

For PostgreSQL's test_decoding, it has the options that shape its text, with the plugin's defaults. The others choose
what is sent (only-local, include-rewrites, stream-changes) or declare it (force-binary). Source: its test_decoding.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import OptionError
from ..identifiers import split_pattern

Value = bool | int | str | tuple[str, ...]

_WORDS = {"on": True, "true": True, "off": False, "false": False, "0": False, "1": True}


class Kind(NamedTuple):
    """A kind of value.

    allowed   the allowed values, or a description, for errors and the printed table
    read      returns a value as it is kept; raises ValueError for one that is not allowed
    of        returns the kind on a server with this max_process_memory in MB; None if it does not depend on it
    """

    allowed: tuple[str | int, ...]
    read: Callable[[Any], Value]
    of: Callable[[int], Kind] | None = None

    def __repr__(self) -> str:
        return f"Kind{self.allowed}"


def switch(*allowed: str) -> Kind:
    """on or off, or a bool; true, false, 0 and 1 mean the same. One of the words may be the only one."""
    words = allowed or ("on", "off")

    def read(value: Any) -> bool:
        known = _WORDS.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(known, int) or known not in (0, 1) or ("off", "on")[known] not in words:
            raise ValueError
        return bool(known)

    return Kind(words, read)


SWITCH = switch()
ZERO_OR_ONE = Kind((0, 1), lambda value: int(bool(SWITCH.read(value))))
"""0 or 1, also in the words of a switch."""


def words(*allowed: str) -> Kind:
    """One of some words."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError
        return value

    return Kind(allowed, read)


def integer(least: int, most: int, unit: str = "", *, is_power_of_two: bool = False) -> Kind:
    """A whole number of a range, or its digits."""
    power = ", a power of two" if is_power_of_two else ""

    def read(value: Any) -> int:
        number = int(value) if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value) else value
        if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
            raise ValueError
        if is_power_of_two and number & (number - 1):
            raise ValueError
        return number

    return Kind((f"{least}..{most} {unit}".rstrip() + power,), read)


def share(percent: int, unit: str) -> Kind:
    """A number of MB or GB that is at most a share of the server's max_process_memory, which may not be known."""
    allowed = f"0..{percent} % of max_process_memory, in {unit}"
    size = 100 * {"MB": 1, "GB": 1024}[unit]
    return Kind((allowed,), integer(0, _MOST).read, lambda memory_mb: integer(0, memory_mb * percent // size, unit))


def items(described: str, check: Callable[[str], object]) -> Kind:
    """Texts separated by commas, or a list of them; kept as a tuple. `check` raises ValueError for a wrong text."""

    def read(value: Any) -> tuple[str, ...]:
        found = value.split(",") if isinstance(value, str) else value
        if not isinstance(found, (list, tuple)) or not found:
            raise ValueError
        for item in found:
            if not isinstance(item, str) or not item or item != item.strip() or "," in item:
                raise ValueError
            check(item)
        return tuple(found)

    return Kind((described,), read)


def _csn_and_lsn(value: Any) -> str:
    if not isinstance(value, str) or value.count("/") != 1:
        raise ValueError
    for number in value.split("/"):
        integer(0, (1 << 64) - 1).read(number)
    return value


def _check_pattern(text: str) -> None:
    """A pattern of tables, without blanks anywhere."""
    if re.search(r"\s", text):
        raise ValueError
    split_pattern(text)


DECODING_MODES = ("serial", "parallel", "sql")
"""How a stream is decoded: by one process, by several, or in an SQL function."""

PRODUCTS = ("GaussDB", "openGauss")


class Option(NamedTuple):
    """An option in one mode; default None: it is not set."""

    name: str
    default: Any
    kind: Kind
    sentence: str

    @property
    def allowed(self) -> tuple[str | int, ...]:
        """The allowed values, or a description."""
        return self.kind.allowed

    def read(self, value: Any) -> Value:
        """Returns the value as it is kept; raises OptionError with the name, the value and what is allowed."""
        try:
            return self.kind.read(value)
        except ValueError:
            words = " or ".join(map(str, self.allowed))
            raise OptionError(f"option {self.name}: expected {words}, got {value!r}") from None


class Spec(NamedTuple):
    """An option.

    kind, default   in each of DECODING_MODES if they depend on the mode
    sentence        what it does
    needs           names in REQUIREMENTS of gaussdb.py: what must hold for it to be given
    products        the servers that have it
    is_written      it shapes what a writer of this package writes
    """

    name: str
    kind: Kind | dict[str, Kind]
    default: Value | dict[str, Value] | None
    sentence: str
    needs: tuple[str, ...] = ()
    products: tuple[str, ...] = PRODUCTS
    is_written: bool = False

    def in_mode(self, mode: str) -> Option:
        """Returns the option for one of DECODING_MODES."""
        kind = self.kind[mode] if isinstance(self.kind, dict) else self.kind
        default = self.default[mode] if isinstance(self.default, dict) else self.default
        return Option(self.name, default, kind, self.sentence)


_GAUSSDB, _OPENGAUSS = ("GaussDB",), ("openGauss",)
_MOST = (1 << 31) - 1

OPTIONS = (
    Spec(
        "include-xids",
        SWITCH,
        True,
        "Adds the transaction id to BEGIN and COMMIT.",
        is_written=True,
    ),
    Spec(
        "include-timestamp",
        SWITCH,
        {"serial": True, "parallel": False, "sql": True},
        "Adds the commit time to BEGIN and COMMIT.",
        is_written=True,
    ),
    Spec(
        "include-originid",
        SWITCH,
        False,
        "Adds the replication origin to BEGIN.",
        products=_OPENGAUSS,
        is_written=True,
    ),
    Spec(
        "include-user",
        SWITCH,
        False,
        "Adds the user name to BEGIN.",
        products=_GAUSSDB,
        is_written=True,
    ),
    Spec(
        "skip-empty-xacts",
        SWITCH,
        False,
        "Leaves out transactions without row changes.",
        is_written=True,
    ),
    Spec("only-local", SWITCH, True, "Leaves out changes that were replicated to this server."),
    Spec(
        "white-table-list",
        items("s.t, *.t or s.*, separated by commas without blanks", _check_pattern),
        None,
        "Leaves out row changes of other tables.",
    ),
    Spec(
        "exclude-userids",
        items("numbers of users, separated by commas", integer(0, 0xFFFFFFFF).read),
        None,
        "Leaves out transactions of these users.",
        products=_GAUSSDB,
    ),
    Spec(
        "exclude-users",
        items("names of users, separated by commas", str),
        None,
        "Leaves out transactions of these users.",
        products=_GAUSSDB,
    ),
    Spec(
        "dynamic-resolution",
        SWITCH,
        True,
        "Resolves the names of tables and users during decoding, not only at the start.",
    ),
    Spec(
        "max-txn-in-memory",
        {"serial": integer(0, 100, "MB"), "parallel": share(25, "MB"), "sql": integer(0, 100, "MB")},
        0,
        "Writes a larger transaction to disk before sending it.",
    ),
    Spec(
        "max-reorderbuffer-in-memory",
        {"serial": integer(0, 100, "GB"), "parallel": share(50, "GB"), "sql": integer(0, 100, "GB")},
        0,
        "Writes transactions to disk before sending them if they are larger in total.",
    ),
    Spec(
        "desc-memory-limit",
        integer(10, 1024, "MB"),
        100,
        "Memory for the descriptions of tables.",
        products=_GAUSSDB,
    ),
    Spec(
        "standby-connection",
        SWITCH,
        False,
        "Accepts the connection only on a standby.",
        needs=("streaming",),
    ),
    Spec(
        "sender-timeout",
        integer(0, _MOST, "ms"),
        None,
        "Closes the connection if the client does not respond for this time.",
        needs=("streaming",),
    ),
    Spec(
        "enable-heartbeat",
        SWITCH,
        False,
        "Sends heartbeats.",
        needs=("streaming",),
        products=_GAUSSDB,
    ),
    Spec(
        "parallel-decode-num",
        integer(1, 20),
        1,
        "Number of parallel decoders; 1 is serial decoding.",
        needs=("streaming", "parallel plugin"),
    ),
    Spec(
        "output-order",
        ZERO_OR_ONE,
        0,
        "Order of transactions: 0 by LSN, 1 by CSN.",
        needs=("streaming",),
    ),
    Spec(
        "auto-advance",
        SWITCH,
        False,
        "Advances the slot automatically when everything that was sent is confirmed.",
        needs=("streaming",),
    ),
    Spec("skip-generated-columns", SWITCH, False, "Leaves out generated columns.", products=_GAUSSDB),
    Spec("enable-ddl-decoding", SWITCH, False, "Sends DDL statements.", products=_GAUSSDB),
    Spec(
        "enable-ddl-json-format",
        SWITCH,
        False,
        "Sends DDL as a JSON template instead of SQL.",
        products=_GAUSSDB,
    ),
    Spec(
        "timezone-is-utc",
        SWITCH,
        False,
        "Sends times in UTC.",
        needs=("streaming",),
        products=_GAUSSDB,
    ),
    Spec(
        "decode-sequence",
        switch("off"),
        False,
        "Does not decode sequences; off is the only value.",
        products=_GAUSSDB,
    ),
    Spec(
        "data-limit",
        integer(0, 100, "GB"),
        10,
        "Amount of log that one call decodes.",
        needs=("area function",),
    ),
    Spec(
        "change-log-max-len",
        integer(1, 65535),
        4096,
        "Length of a queue of decoded changes.",
        needs=("parallel",),
    ),
    Spec(
        "max-decode-to-sender-cache-num",
        integer(1, 65535),
        4096,
        "Number of decoded changes that may wait for the sender.",
        needs=("parallel",),
    ),
    Spec(
        "logical-receiver-num",
        integer(1, 20),
        1,
        "Number of receivers in distributed decoding.",
        needs=("streaming", "CSN order"),
    ),
    Spec(
        "slice-id",
        integer(0, 8192),
        -1,
        "Slice that this data node belongs to; -1 means not set.",
        needs=("data node", "CSN order"),
    ),
    Spec(
        "start-position",
        Kind(("csn/lsn, two decimal numbers of 64 bits",), _csn_and_lsn),
        None,
        "Position at which a data node starts to send.",
        needs=("data node", "CSN order"),
    ),
    Spec(
        "force-binary",
        SWITCH,
        False,
        "Declares the output as binary.",
        needs=("serial",),
    ),
    Spec(
        "decode-style",
        words("j", "t", "b"),
        "b",
        "Style: j is JSON, t is TEXT, b is binary. parallel_json_decoding defaults to j, parallel_text_decoding to t.",
        needs=("parallel",),
    ),
    Spec(
        "sending-batch",
        ZERO_OR_ONE,
        0,
        "1 collects records into messages of slightly more than 1 MiB.",
        needs=("parallel",),
        is_written=True,
    ),
    Spec(
        "parallel-queue-size",
        integer(2, 1024, is_power_of_two=True),
        128,
        "Length of the queues between the decoders.",
        needs=("parallel",),
    ),
)
"""All of them; what a need is, and the plugins, are in gaussdb.py."""


def write_options(mode: str) -> tuple[Option, ...]:
    """Returns the options that shape what is written, with the defaults of one of DECODING_MODES."""
    return tuple(row.in_mode(mode) for row in OPTIONS if row.is_written)


WRITE_OPTIONS = write_options("parallel")


def resolve(given: Mapping[str, Any] | None, table: Iterable[Option] = WRITE_OPTIONS) -> dict[str, Any]:
    """All options of the table with the given values checked and the others at their defaults.

    Switches and numbers also take on, off, true, false, 0 and 1 as words. Raises OptionError with the name, the value
    and what is allowed.
    """
    rows = {row.name: row for row in table}
    check_names(given or {}, rows)
    return {name: row.read((given or {})[name]) if name in (given or {}) else row.default for name, row in rows.items()}


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    """Raises OptionError for an unknown name."""
    known = list(known)
    for name in given:
        if name not in known:
            raise OptionError(f"unknown option {name!r}{nearest(name, known)}; known are {', '.join(known)}")


def listed(known: Sequence[str]) -> str:
    """Returns `; there are x, y`, `; there is only x` or `; there are none`."""
    there = "is only" if len(known) == 1 else "are"
    return f"; there {there} {', '.join(known) or 'none'}"


def nearest(name: str, known: Iterable[Any]) -> str:
    """Returns `, did you mean x?`, or an empty text if no known name is similar. The case does not matter.

    If the name is the first word of several names, as gaussdb is, all of these are named.
    """
    names = [str(item) for item in known]
    longer = [item for item in names if item.startswith(f"{name}-")]
    if len(longer) > 1:
        return f", did you mean {', '.join(map(repr, longer[:-1]))} or {longer[-1]!r}?"
    folded = {item.casefold(): item for item in reversed(names)}
    close = difflib.get_close_matches(str(name), names, n=1)
    close = close or [folded[item] for item in difflib.get_close_matches(str(name).casefold(), folded, n=1)]
    return f", did you mean {close[0]!r}?" if close else ""


TEST_DECODING_OPTIONS = (
    Option("include-xids", True, SWITCH, "Adds the transaction id to records."),
    Option("include-timestamp", False, SWITCH, "Adds the time to records that end a transaction."),
    Option("skip-empty-xacts", False, SWITCH, "Leaves out transactions and streamed blocks without changes."),
)
