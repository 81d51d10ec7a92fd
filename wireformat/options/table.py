"""Every option of GaussDB's and openGauss's logical decoding, one per row, and the check of a set of options.

Source: GaussDB document "Logical Decoding Options"; openGauss's documentation of the same functions. The page of the
document leaves the name of auto-advance blank: the text is that of the option of this name.

For PostgreSQL's test_decoding, it has the options that shape its text, with the plugin's defaults. The others choose
what is sent (only-local, include-rewrites, stream-changes) or declare it (force-binary). Source: its test_decoding.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import OptionError
from .kinds import (
    ByMode,
    Integer,
    Items,
    LsnText,
    OneOf,
    Option,
    Share,
    Spec,
    Switch,
    ZeroOrOne,
    check_name,
    check_oid,
    check_pattern,
)

_GAUSSDB, _OPENGAUSS = ("GaussDB",), ("openGauss",)
_MOST = (1 << 31) - 1

OPTIONS = (
    Spec(
        "include-xids",
        Switch(),
        True,
        "Adds the transaction id to BEGIN and COMMIT.",
        is_written=True,
    ),
    Spec(
        "include-timestamp",
        Switch(),
        ByMode(serial=True, parallel=False, sql=True),
        "Adds the commit time to BEGIN and COMMIT.",
        is_written=True,
    ),
    Spec(
        "include-originid",
        Switch(),
        False,
        "Adds the replication origin to BEGIN.",
        products=_OPENGAUSS,
        is_written=True,
    ),
    Spec(
        "include-user",
        Switch(),
        False,
        "Adds the user name to BEGIN.",
        products=_GAUSSDB,
        is_written=True,
    ),
    Spec(
        "skip-empty-xacts",
        Switch(),
        False,
        "Leaves out transactions without row changes.",
        is_written=True,
    ),
    Spec("only-local", Switch(), True, "Leaves out changes that were replicated to this server."),
    Spec(
        "white-table-list",
        Items("s.t, *.t or s.*, separated by commas without blanks", check_pattern),
        None,
        "Leaves out row changes of other tables.",
    ),
    Spec(
        "exclude-userids",
        Items("numbers of users, separated by commas", check_oid),
        None,
        "Leaves out transactions of these users.",
        products=_GAUSSDB,
    ),
    Spec(
        "exclude-users",
        Items("names of users, separated by commas", check_name),
        None,
        "Leaves out transactions of these users.",
        products=_GAUSSDB,
    ),
    Spec(
        "dynamic-resolution",
        Switch(),
        True,
        "Resolves the names of tables and users during decoding, not only at the start.",
    ),
    Spec(
        "max-txn-in-memory",
        ByMode(serial=Integer(0, 100, "MB"), parallel=Share(25, "MB"), sql=Integer(0, 100, "MB")),
        0,
        "Writes a larger transaction to disk before sending it.",
    ),
    Spec(
        "max-reorderbuffer-in-memory",
        ByMode(serial=Integer(0, 100, "GB"), parallel=Share(50, "GB"), sql=Integer(0, 100, "GB")),
        0,
        "Writes transactions to disk before sending them if they are larger in total.",
    ),
    Spec(
        "desc-memory-limit",
        Integer(10, 1024, "MB"),
        100,
        "Memory for the descriptions of tables.",
        products=_GAUSSDB,
    ),
    Spec(
        "standby-connection",
        Switch(),
        False,
        "Accepts the connection only on a standby.",
        needs=("streaming",),
    ),
    Spec(
        "sender-timeout",
        Integer(0, _MOST, "ms"),
        None,
        "Closes the connection if the client does not respond for this time.",
        needs=("streaming",),
    ),
    Spec(
        "enable-heartbeat",
        Switch(),
        False,
        "Sends heartbeats.",
        needs=("streaming",),
        products=_GAUSSDB,
    ),
    Spec(
        "parallel-decode-num",
        Integer(1, 20),
        1,
        "Number of parallel decoders; 1 is serial decoding.",
        needs=("streaming", "parallel plugin"),
    ),
    Spec(
        "output-order",
        ZeroOrOne(),
        0,
        "Order of transactions: 0 by LSN, 1 by CSN.",
        needs=("streaming",),
    ),
    Spec(
        "auto-advance",
        Switch(),
        False,
        "Advances the slot automatically when everything that was sent is confirmed.",
        needs=("streaming",),
    ),
    Spec("skip-generated-columns", Switch(), False, "Leaves out generated columns.", products=_GAUSSDB),
    Spec("enable-ddl-decoding", Switch(), False, "Sends DDL statements.", products=_GAUSSDB),
    Spec(
        "enable-ddl-json-format",
        Switch(),
        False,
        "Sends DDL as a JSON template instead of SQL.",
        products=_GAUSSDB,
    ),
    Spec(
        "timezone-is-utc",
        Switch(),
        False,
        "Sends times in UTC.",
        needs=("streaming",),
        products=_GAUSSDB,
    ),
    Spec(
        "decode-sequence",
        Switch(("off",)),
        False,
        "Does not decode sequences; off is the only value.",
        products=_GAUSSDB,
    ),
    Spec(
        "data-limit",
        Integer(0, 100, "GB"),
        10,
        "Amount of log that one call decodes.",
        needs=("area function",),
    ),
    Spec(
        "change-log-max-len",
        Integer(1, 65535),
        4096,
        "Length of a queue of decoded changes.",
        needs=("parallel",),
    ),
    Spec(
        "max-decode-to-sender-cache-num",
        Integer(1, 65535),
        4096,
        "Number of decoded changes that may wait for the sender.",
        needs=("parallel",),
    ),
    Spec(
        "logical-receiver-num",
        Integer(1, 20),
        1,
        "Number of receivers in distributed decoding.",
        needs=("streaming", "CSN order"),
    ),
    Spec(
        "slice-id",
        Integer(0, 8192),
        -1,
        "Slice that this data node belongs to; -1 means not set.",
        needs=("data node", "CSN order"),
    ),
    Spec(
        "start-position",
        LsnText(),
        None,
        "Position at which a data node starts to send.",
        needs=("data node", "CSN order"),
    ),
    Spec(
        "force-binary",
        Switch(),
        False,
        "Declares the output as binary.",
        needs=("serial",),
    ),
    Spec(
        "decode-style",
        OneOf(("j", "t", "b")),
        "b",
        "Style: j is JSON, t is TEXT, b is binary. parallel_json_decoding defaults to j, parallel_text_decoding to t.",
        needs=("parallel",),
    ),
    Spec(
        "sending-batch",
        ZeroOrOne(),
        0,
        "1 collects records into messages of slightly more than 1 MiB.",
        needs=("parallel",),
        is_written=True,
    ),
    Spec(
        "parallel-queue-size",
        Integer(2, 1024, is_power_of_two=True),
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
    Option("include-xids", True, Switch(), "Adds the transaction id to records."),
    Option("include-timestamp", False, Switch(), "Adds the time to records that end a transaction."),
    Option("skip-empty-xacts", False, Switch(), "Leaves out transactions and streamed blocks without changes."),
)
