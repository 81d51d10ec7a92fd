"""The output plugins of slots: the format that each sends, and the options that it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import OptionError
from ..options import Options
from ..options.checks import shown
from ..options.gaussdb import PLUGINS as GAUSSDB
from .connection import Connection
from .messages import POSTGRES as POSTGRES_FEEDBACK

POSTGRES = {"pgoutput": "pgoutput", "test_decoding": "test-decoding"}
"""The formats of PostgreSQL's plugins. The formats of GaussDB's plugins depend on their options."""

READ = tuple(dict.fromkeys((*POSTGRES, *GAUSSDB)))
"""The plugins whose slots can be read."""

_PARALLEL = {
    "parallel-decode-num": 4,
    "decode-style": "b",
    "sending-batch": 1,
    "include-xids": True,
    "include-timestamp": True,
}
"""The usual options of mppdb_decoding: it decodes in parallel, in its binary style. They are not used by SQL functions,
which do not decode in parallel, or if the caller asks for one decoder."""

_TEXT = {"include-xids": True, "include-timestamp": True, "skip-empty-xacts": True}
"""The usual options of test_decoding, which openGauss has too. It writes other lines than PostgreSQL's."""


_AT_COMMIT = "transactions come when they commit"
_AS_TEXT = (
    "with a snapshot or state='latest', values must be text: the binary form of many types is kept as digits, which "
    "match no keys of rows that are text. Leave it out"
)
_REFUSED = {"streaming": _AT_COMMIT, "two_phase": _AT_COMMIT, "binary": _AS_TEXT}
"""Options of pgoutput that are not supported, and why; binary only if rows of a lake must find others."""


class Asked(NamedTuple):
    """The format and the options that a plugin is asked for.

    format        the format that the plugin then sends
    options       the options of START_REPLICATION
    is_parallel   whether the server decodes in parallel
    """

    format: str
    options: dict[str, str]
    is_parallel: bool = False


CSN_ORDER = (
    "positions are LSNs, and in CSN order a transaction may come after one with a higher LSN. After a restart at that "
    "LSN it would be missing"
)
"""Why streams in CSN order are not read. Source: GaussDB's documentation, "Logical Replication Functions": the
confirmed_flush of a CSN-based slot is meaningless."""


def ask(
    connection: Connection,
    plugin: str,
    publications: Sequence[str],
    given: Mapping[str, object],
    via: str,
    *,
    is_text: bool = False,
) -> Asked:
    """Returns what to ask of a plugin.

    connection     quotes names
    publications   the names of publications, for pgoutput
    given          options of the plugin, in place of the usual ones
    via            streaming or sql
    is_text        whether values must be text, as those that are there

    Raises OptionError for a plugin or an option that is not supported.
    """
    if plugin not in READ:
        raise OptionError(f"option slot: its plugin {plugin} is not supported; use one of {', '.join(READ)}")
    if plugin == "pgoutput":
        for name, why in _REFUSED.items():
            is_off = str(given.get(name, "off")).lower() in ("off", "false", "0")
            if not is_off and (is_text or name != "binary"):
                raise OptionError(f"option options: {name} is not supported here: {why}")
        if not publications:
            raise OptionError("option publication: pgoutput needs the name of a publication, such as publication='p'")
        names = ",".join(connection.identifier(name) for name in publications)
        return Asked("pgoutput", _texts({"proto_version": 1, "publication_names": names, **given}))
    if publications:
        raise OptionError(f"option publication: {plugin} has no publications, only pgoutput; choose tables instead")
    is_serial = via != "streaming" or str(given.get("parallel-decode-num", "")) == "1"
    usual: Mapping[str, Mapping[str, object]] = {
        "mppdb_decoding": {} if is_serial else _PARALLEL,
        "test_decoding": _TEXT,
    }
    options = {**usual.get(plugin, {}), **given}
    if plugin == "test_decoding" and connection.feedback is POSTGRES_FEEDBACK:
        return Asked(POSTGRES[plugin], _texts(options))
    checked = Options.gaussdb(options, plugin=plugin, product=GAUSSDB[plugin].products[0], via=via)
    if checked.values["output-order"] == 1:
        raise OptionError(f"option options: output-order 1 is not supported here: {CSN_ORDER}")
    return Asked(checked.format, _texts(options), checked.mode == "parallel")


def publication_names(given: str | Iterable[str] | None) -> list[str]:
    """Returns the names of publications as a list; raises OptionError."""
    if given is None:
        return []
    if not isinstance(given, Iterable):
        raise OptionError(f"option publication: expected a name or several, got {shown(given)}")
    names: list[Any] = [given] if isinstance(given, str) else list(given)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise OptionError(f"option publication: expected a name or several, got {shown(given)}")
    return names


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    """Returns the values of options as texts."""
    return {
        name: ("on" if value else "off") if isinstance(value, bool) else str(value) for name, value in options.items()
    }
