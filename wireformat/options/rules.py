"""What options depend on: the plugins of a slot, and the rules between options, one per row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .spec import PRODUCTS


class Plugin(NamedTuple):
    """An output plugin: what it sends in serial decoding, and its decode-style in parallel; None: it does not do that.

    A plugin without serial decoding sends its own style in an SQL function too.
    """

    serial_format: str | None
    decode_style: str | None
    products: tuple[str, ...] = PRODUCTS


PLUGINS = {
    "mppdb_decoding": Plugin("mppdb-json", "b"),
    "sql_decoding": Plugin("sql-decoding", "b"),
    "parallel_binary_decoding": Plugin(None, "b"),
    "parallel_json_decoding": Plugin(None, "j"),
    "parallel_text_decoding": Plugin(None, "t"),
    "test_decoding": Plugin("opengauss-test-decoding", None, ("openGauss",)),
}

PARALLEL_FORMATS = {"b": "gaussdb-binary", "j": "gaussdb-json", "t": "gaussdb-text"}
"""By decode-style."""

FOLLOWED_VIA = ("streaming", "sql")
"""How a slot is followed: by START_REPLICATION, or by pg_logical_slot_peek_changes and its like."""

VIA = (*FOLLOWED_VIA, "area")
"""How a slot is read: as it is followed, or by pg_logical_get_area_changes."""


class Setting(NamedTuple):
    """The facts that a rule depends on."""

    plugin: Plugin
    via: str
    values: Mapping[str, Any]

    @property
    def is_parallel(self) -> bool:
        """Whether several decoders work in parallel."""
        return bool(self.values["parallel-decode-num"] > 1)


class Requirement(NamedTuple):
    """Something that must hold for an option to be given."""

    words: str
    holds: Callable[[Setting], bool]


REQUIREMENTS = {
    "streaming": Requirement("START_REPLICATION; SQL functions refuse it", lambda setting: setting.via == "streaming"),
    "area function": Requirement("pg_logical_get_area_changes", lambda setting: setting.via == "area"),
    "parallel": Requirement("parallel-decode-num above 1", lambda setting: setting.is_parallel),
    "serial": Requirement("serial decoding, parallel-decode-num 1", lambda setting: not setting.is_parallel),
    "parallel plugin": Requirement(
        f"one of the plugins {', '.join(name for name, row in PLUGINS.items() if row.decode_style)} for more than 1",
        lambda setting: not setting.is_parallel or setting.plugin.decode_style is not None,
    ),
    "CSN order": Requirement("output-order 1", lambda setting: setting.values["output-order"] == 1),
    "data node": Requirement("a connection to a data node", lambda setting: True),  # which cannot be seen from here
}
