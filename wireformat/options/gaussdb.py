"""A checked set of GaussDB's or openGauss's options: what to ask the server for, and how to read what it sends.

What options depend on: the plugins of a slot, and the rules between options, one per row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import OptionError
from .checks import mapping, number, one_of
from .reading import KINDS
from .table import DECODING_MODES, OPTIONS, PRODUCTS, Option, Spec, Value, check_names


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


class PrintedOption(NamedTuple):
    """A row of the table of options, as text."""

    option: str
    values: str
    default: str
    needs: str
    servers: str
    sentence: str


@dataclass(frozen=True)
class Options:
    """Options that go together, on a server.

    given       the options that were given, checked
    values      every option that the server has, with its default where it was not given; None: it is not set
    mode        serial, parallel or sql: where the defaults come from
    format      the name of the format that the server sends
    """

    given: dict[str, Value]
    values: dict[str, Value | None]
    plugin: str
    product: str
    via: str
    mode: str
    format: str

    @classmethod
    def gaussdb(
        cls,
        given: Mapping[str, Any] | None = None,
        *,
        plugin: str = "mppdb_decoding",
        product: str = "GaussDB",
        via: str = "streaming",
        max_process_memory_mb: int | None = None,
    ) -> Options:
        """Checks options by name.

        given       as `{"parallel-decode-num": 4, "white-table-list": "public.*"}`; values may be texts
        plugin      that the slot was made with
        product     GaussDB or openGauss
        via         streaming (START_REPLICATION), sql (pg_logical_slot_peek_changes and its like), or area
                    (pg_logical_get_area_changes)
        max_process_memory_mb   of the server: two ranges depend on it, and are open at their end if it is not known
        Raises OptionError with the option, the value, what is allowed, and the nearest known name.
        """
        given = mapping("options", given)
        for name, choice, known in (("plugin", plugin, PLUGINS), ("product", product, PRODUCTS), ("via", via, VIA)):
            one_of(name, choice, tuple(known))
        if max_process_memory_mb is not None:
            number("max_process_memory_mb", max_process_memory_mb, 1)
        row = PLUGINS[plugin]
        if product not in row.products:
            raise OptionError(f"plugin: {product} has no {plugin}; {', '.join(row.products)} has it")
        specs = {spec.name: spec for spec in OPTIONS}
        check_names(given, specs)
        for name in given:
            if product not in specs[name].products:
                raise OptionError(
                    f"option {name}: {product} does not have it; {', '.join(specs[name].products)} has it"
                )
        decoders = specs["parallel-decode-num"].in_mode("serial")
        is_parallel = row.serial_format is None or decoders.read(given.get(decoders.name, decoders.default)) != 1
        mode = "sql" if via != "streaming" else "parallel" if is_parallel else "serial"
        options = {
            name: _with_memory(spec.in_mode(mode), max_process_memory_mb)
            for name, spec in specs.items()
            if product in spec.products
        }
        checked = {name: options[name].read(value) for name, value in given.items()}
        defaults = {name: option.default for name, option in options.items()}
        defaults["decode-style"] = row.decode_style
        values = defaults | checked
        _check_needs(specs, checked, Setting(row, via, values))
        format = row.serial_format if mode != "parallel" else None
        return cls(checked, values, plugin, product, via, mode, format or PARALLEL_FORMATS[values["decode-style"]])

    @staticmethod
    def table() -> tuple[PrintedOption, ...]:
        """Returns every option, as text to print."""
        return tuple(
            PrintedOption(
                spec.name,
                _by_mode({mode: ", ".join(map(str, spec.in_mode(mode).allowed)) for mode in DECODING_MODES}),
                _by_mode({mode: _text(spec.in_mode(mode).default) for mode in DECODING_MODES}),
                ", ".join(spec.needs),
                ", ".join(spec.products),
                spec.sentence,
            )
            for spec in OPTIONS
        )

    def start_replication(self) -> str:
        """The list of options after `START_REPLICATION SLOT … LOGICAL …`, in parentheses; empty if none is given.

        Raises OptionError for one that START_REPLICATION refuses.
        """
        given = self._via("streaming").given
        pairs = [f'"{name}" {_quoted(_text(value))}' for name, value in given.items()]
        return f"({', '.join(pairs)})" if pairs else ""

    def peek_changes(self) -> str:
        """The arguments of `pg_logical_slot_peek_changes` and its like after slot, position and count, with commas.

        Raises OptionError for an option that these functions refuse.
        """
        return self._arguments("sql")

    def area_changes(self) -> str:
        """The options as the last arguments of `pg_logical_get_area_changes`. Raises OptionError as `peek_changes`."""
        return self._arguments("area")

    @property
    def filters(self) -> dict[str, Any]:
        """Keyword arguments for `decode` and `arrow.changes` that leave out here what the server would leave out.

        They are for streams that were made without these options. Users are known by name, and only where BEGIN carries
        the name (include-user).
        """
        values: Mapping[str, Any] = self.values
        filters: dict[str, Any] = {}
        if values["white-table-list"]:
            filters["tables"] = list(values["white-table-list"])
        if values.get("exclude-users"):
            filters["exclude_users"] = list(values["exclude-users"])
        if values["skip-empty-xacts"]:
            filters["skip_empty_xacts"] = True
        if not values.get("enable-heartbeat"):
            filters["kinds"] = [kind for kind in KINDS if kind != "HEARTBEAT"]
        return filters

    def _arguments(self, via: str) -> str:
        texts = [text for name, value in self._via(via).given.items() for text in (name, _text(value))]
        return ", ".join(map(_literal, texts))

    def _via(self, via: str) -> Options:
        if via == self.via:
            return self
        return Options.gaussdb(self.given, plugin=self.plugin, product=self.product, via=via)


def _check_needs(specs: Mapping[str, Spec], given: Mapping[str, Value], setting: Setting) -> None:
    for name in given:
        for need in specs[name].needs:
            if not REQUIREMENTS[need].holds(setting):
                raise OptionError(
                    f"option {name}: needs {REQUIREMENTS[need].words}; got {_text(given[name])!r} without it"
                )


def _with_memory(option: Option, memory_mb: int | None) -> Option:
    of = option.kind.of
    return option if memory_mb is None or of is None else option._replace(kind=of(memory_mb))


def _text(value: Value | None) -> str:
    """Returns a value as the servers take it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ",".join(value)
    return "" if value is None else str(value)


def _quoted(text: str) -> str:
    """Returns a string for replication commands, in which only quotes are special."""
    return "'" + text.replace("'", "''") + "'"


def _literal(text: str) -> str:
    """Returns an SQL string that does not depend on standard_conforming_strings."""
    return f"E{_quoted(text)}".replace("\\", "\\\\") if "\\" in text else _quoted(text)


def _by_mode(texts: Mapping[str, str]) -> str:
    """Returns the text of all modes, or each text with its modes."""
    modes: dict[str, list[str]] = {}
    for mode, text in texts.items():
        modes.setdefault(text, []).append(mode)
    if len(modes) == 1:
        return texts[DECODING_MODES[0]]
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in modes.items())
