"""Options of a server: names, kinds, ranges and rules, and what is asked for with them."""

from __future__ import annotations

import pickle
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.options.gaussdb import PLUGINS, REQUIREMENTS, VIA
from wireformat.options.reading import KINDS
from wireformat.options.table import DECODING_MODES, OPTIONS, PRODUCTS

PARALLEL: dict[str, Any] = {"parallel-decode-num": 4}
CSN_ORDER: dict[str, Any] = {"output-order": 1}

GOOD: dict[str, tuple[Any, str]] = {
    "include-xids": (False, "off"),
    "include-timestamp": ("TRUE", "on"),
    "include-originid": (1, "on"),
    "include-user": ("on", "on"),
    "skip-empty-xacts": (True, "on"),
    "only-local": ("0", "off"),
    "white-table-list": ("public.t,*.u,s.*", "public.t,*.u,s.*"),
    "exclude-userids": ("10,4294967295", "10,4294967295"),
    "exclude-users": (["ana", "O'Hara"], "ana,O'Hara"),
    "dynamic-resolution": ("false", "off"),
    "max-txn-in-memory": (100, "100"),
    "max-reorderbuffer-in-memory": ("0", "0"),
    "desc-memory-limit": (10, "10"),
    "standby-connection": (True, "on"),
    "sender-timeout": ("2147483647", "2147483647"),
    "enable-heartbeat": (True, "on"),
    "parallel-decode-num": ("20", "20"),
    "output-order": (1, "1"),
    "auto-advance": (True, "on"),
    "skip-generated-columns": (True, "on"),
    "enable-ddl-decoding": (True, "on"),
    "enable-ddl-json-format": (True, "on"),
    "timezone-is-utc": (True, "on"),
    "decode-sequence": (False, "off"),
    "data-limit": (0, "0"),
    "change-log-max-len": (65535, "65535"),
    "max-decode-to-sender-cache-num": (1, "1"),
    "logical-receiver-num": (20, "20"),
    "slice-id": (8192, "8192"),
    "start-position": ("1/18446744073709551615", "1/18446744073709551615"),
    "force-binary": (True, "on"),
    "decode-style": ("j", "j"),
    "sending-batch": (1, "1"),
    "parallel-queue-size": ("1024", "1024"),
}

BAD: dict[str, tuple[Any, ...]] = {
    "include-xids": ("yes", 2, None, "", 0.0, []),
    "white-table-list": ("t", "a.b, c.d", "a.b,", "", [], "a.b.c", "a .b", None, 5, [5], ["a.b,c.d"]),
    "exclude-userids": ("ana", "4294967296", "-1", "1,,2", [10]),
    "exclude-users": ("", "a,,b", " a", ["a,b"], "a,b "),
    "max-txn-in-memory": (101, -1, "100 MB", True, 1.0),
    "desc-memory-limit": (9, 1025),
    "sender-timeout": (2147483648, -1),
    "parallel-decode-num": (0, 21, "on", "٤"),
    "output-order": (2, "csn"),
    "decode-sequence": (True, "on", 1),
    "data-limit": (101,),
    "change-log-max-len": (0, 65536),
    "logical-receiver-num": (0, 21),
    "slice-id": (-1, 8193),
    "start-position": ("5", "5/", "/5", "1/2/3", "1/18446744073709551616", "0/CFE5C80", 5),
    "decode-style": ("B", "binary", "", 5, None),
    "sending-batch": (2, "two"),
    "parallel-queue-size": (1, 3, 100, 2048),
}


def situation(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Other options and arguments with which this option may be given."""
    spec = next(spec for spec in OPTIONS if spec.name == name)
    given: dict[str, Any] = {}
    if "parallel" in spec.needs:
        given |= PARALLEL
    if "CSN order" in spec.needs:
        given |= CSN_ORDER
    return given, {"product": spec.products[0], "via": "area" if "area function" in spec.needs else "streaming"}


def test_every_option_has_a_good_value_here() -> None:
    assert list(GOOD) == [spec.name for spec in OPTIONS]
    assert len(OPTIONS) == 34


@pytest.mark.parametrize("name", GOOD)
def test_good_values_come_back_as_the_server_takes_them(name: str) -> None:
    value, text = GOOD[name]
    given, arguments = situation(name)
    options = wf.Options.gaussdb({**given, name: value}, **arguments)
    quoted = text.replace("'", "''")
    if arguments["via"] == "area":
        assert options.area_changes() == f"'{name}', '{quoted}'"
    else:
        assert f"\"{name}\" '{quoted}'" in options.start_replication()
    assert options.given[name] == options.values[name]
    again = wf.Options.gaussdb({**given, name: text}, **arguments)
    assert again == options
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_bad_values(name: str, value: Any) -> None:
    given, arguments = situation(name)
    with pytest.raises(wf.OptionError) as raised:
        wf.Options.gaussdb({**given, name: value}, **arguments)
    words = " or ".join(map(str, next(spec for spec in OPTIONS if spec.name == name).in_mode("serial").allowed))
    assert str(raised.value) == f"option {name}: expected {words}, got {value!r}"


@pytest.mark.parametrize(
    ("given", "arguments", "words"),
    [
        (
            {"include-xid": 1},
            {},
            "unknown option 'include-xid', did you mean 'include-xids'?; known are include-xids, ",
        ),
        (
            {"sending-batch": 0},
            {},
            "option sending-batch: needs parallel-decode-num above 1; got '0' without it",
        ),
        ({"decode-style": "b"}, {"plugin": "parallel_json_decoding"}, "needs parallel-decode-num above 1"),
        ({"parallel-queue-size": 2} | {"parallel-decode-num": 1}, {}, "needs parallel-decode-num above 1"),
        (PARALLEL | {"force-binary": False}, {}, "option force-binary: needs serial decoding"),
        ({"slice-id": 3}, {}, "option slice-id: needs output-order 1; got '3' without it"),
        ({"start-position": "1/2", "output-order": 0}, {}, "option start-position: needs output-order 1"),
        ({"logical-receiver-num": 3}, {}, "option logical-receiver-num: needs output-order 1"),
        (PARALLEL, {"via": "sql"}, "option parallel-decode-num: needs START_REPLICATION; SQL functions refuse it"),
        ({"enable-heartbeat": "on"}, {"via": "area"}, "option enable-heartbeat: needs START_REPLICATION"),
        ({"data-limit": 5}, {"via": "sql"}, "option data-limit: needs pg_logical_get_area_changes"),
        ({"include-originid": 1}, {}, "option include-originid: GaussDB does not have it; openGauss has it"),
        ({"include-user": 1}, {"product": "openGauss"}, "option include-user: openGauss does not have it; GaussDB has"),
        ({}, {"plugin": "test_decoding"}, "plugin: GaussDB has no test_decoding; openGauss has it"),
        (
            PARALLEL,
            {"plugin": "test_decoding", "product": "openGauss"},
            "needs one of the plugins mppdb_decoding, ",
        ),
        ({}, {"plugin": "mppdb"}, "plugin: expected mppdb_decoding, "),
        ({}, {"plugin": "mpdb_decoding"}, "got 'mpdb_decoding', did you mean 'mppdb_decoding'?"),
        ({}, {"product": "gaussdb"}, "product: expected GaussDB, openGauss; got 'gaussdb'"),
        ({}, {"via": "kafka"}, "via: expected streaming, sql, area; got 'kafka'"),
    ],
)
def test_rules(given: dict[str, Any], arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(wf.OptionError) as raised:
        wf.Options.gaussdb(given, **arguments)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("plugin", "given", "via", "mode", "format"),
    [
        ("mppdb_decoding", {}, "streaming", "serial", "mppdb-json"),
        ("mppdb_decoding", {"parallel-decode-num": 1}, "streaming", "serial", "mppdb-json"),
        ("mppdb_decoding", {}, "sql", "sql", "mppdb-json"),
        ("mppdb_decoding", PARALLEL, "streaming", "parallel", "gaussdb-binary"),
        ("mppdb_decoding", PARALLEL | {"decode-style": "t"}, "streaming", "parallel", "gaussdb-text"),
        ("sql_decoding", {}, "streaming", "serial", "sql-decoding"),
        ("sql_decoding", {}, "area", "sql", "sql-decoding"),
        ("sql_decoding", PARALLEL | {"decode-style": "j"}, "streaming", "parallel", "gaussdb-json"),
        ("parallel_binary_decoding", {}, "streaming", "parallel", "gaussdb-binary"),
        ("parallel_json_decoding", {}, "streaming", "parallel", "gaussdb-json"),
        ("parallel_json_decoding", PARALLEL, "streaming", "parallel", "gaussdb-json"),
        ("parallel_json_decoding", PARALLEL | {"decode-style": "b"}, "streaming", "parallel", "gaussdb-binary"),
        ("parallel_text_decoding", {}, "sql", "sql", "gaussdb-text"),
        ("test_decoding", {}, "streaming", "serial", "opengauss-test-decoding"),
        ("test_decoding", {"parallel-decode-num": 1}, "streaming", "serial", "opengauss-test-decoding"),
    ],
)
def test_mode_and_format(plugin: str, given: dict[str, Any], via: str, mode: str, format: str) -> None:
    product = PLUGINS[plugin].products[-1]
    options = wf.Options.gaussdb(given, plugin=plugin, product=product, via=via)
    assert (options.mode, options.format) == (mode, format)
    assert options.values["include-timestamp"] is (mode != "parallel")


def test_defaults_are_filled_in_and_not_sent() -> None:
    options = wf.Options.gaussdb()
    assert options.given == {}
    assert (options.start_replication(), options.peek_changes(), options.area_changes()) == ("", "", "")
    assert options.values["max-txn-in-memory"] == 0
    assert options.values["parallel-queue-size"] == 128
    assert options.values["white-table-list"] is None
    assert "include-originid" not in options.values
    assert "include-originid" in wf.Options.gaussdb(product="openGauss").values


def test_defaults_are_values_that_could_be_given() -> None:
    for spec in OPTIONS:
        for mode in DECODING_MODES:
            option = spec.in_mode(mode)
            if option.default is not None and spec.name != "slice-id":  # -1 is how the servers say "not set"
                assert option.read(option.default) == option.default


def test_ranges_that_depend_on_the_servers_memory() -> None:
    for name, allowed in (("max-txn-in-memory", "0..256 MB"), ("max-reorderbuffer-in-memory", "0..0 GB")):
        given = PARALLEL | {name: 257}
        assert wf.Options.gaussdb(given).values[name] == 257
        with pytest.raises(wf.OptionError, match=rf"option {name}: expected {re.escape(allowed)}, got 257"):
            wf.Options.gaussdb(given, max_process_memory_mb=1027)
        with pytest.raises(wf.OptionError, match=rf"option {name}: expected 0\.\.(25|50) % of max_process_memory, in"):
            wf.Options.gaussdb(PARALLEL | {name: -1})
    assert wf.Options.gaussdb(PARALLEL | {"max-txn-in-memory": 256}, max_process_memory_mb=1027).mode == "parallel"


def test_start_replication_and_peek_changes() -> None:
    options = wf.Options.gaussdb({"include-xids": False, "exclude-users": "o'hara,back\\slash"})
    assert options.start_replication() == "(\"include-xids\" 'off', \"exclude-users\" 'o''hara,back\\slash')"
    assert options.peek_changes() == "'include-xids', 'off', 'exclude-users', E'o''hara,back\\\\slash'"
    assert options.area_changes() == options.peek_changes()


def test_what_a_function_refuses_is_refused_where_it_is_asked_for() -> None:
    options = wf.Options.gaussdb(PARALLEL)
    with pytest.raises(wf.OptionError, match="parallel-decode-num: needs START_REPLICATION"):
        options.peek_changes()
    area = wf.Options.gaussdb({"data-limit": 1}, via="area")
    for call in (area.start_replication, area.peek_changes):
        with pytest.raises(wf.OptionError, match="data-limit: needs pg_logical_get_area_changes"):
            call()


def unquoted(text: str) -> str:
    """What a string of the replication commands means."""
    assert re.fullmatch(r"'(?:[^']|'')*'", text)
    return text[1:-1].replace("''", "'")


@given(st.lists(st.text(min_size=1).filter(lambda name: name == name.strip() and "," not in name), min_size=1))
def test_any_name_comes_through_the_quotes(names: list[str]) -> None:
    options = wf.Options.gaussdb({"exclude-users": names})
    assert unquoted(options.start_replication().removeprefix('("exclude-users" ')[:-1]).split(",") == names
    argument = options.peek_changes().removeprefix("'exclude-users', ")
    if argument.startswith("E"):
        assert "\\" in "".join(names)
        argument = re.sub(r"\\(.)", r"\1", argument[1:], flags=re.DOTALL)
    assert unquoted(argument).split(",") == names


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text() | st.integers())


@given(st.dictionaries(st.sampled_from([spec.name for spec in OPTIONS]) | st.text(), ANYTHING), st.sampled_from(VIA))
def test_anything_is_taken_or_refused_with_an_option_error(given: dict[str, Any], via: str) -> None:
    for product in PRODUCTS:
        with suppress(wf.OptionError):
            options = wf.Options.gaussdb(given, product=product, via=via)
            assert wf.Options.gaussdb(options.given, product=product, via=via) == options


def test_filters() -> None:
    plain = wf.Options.gaussdb().filters
    assert list(plain) == ["kinds"]
    assert set(plain["kinds"]) == set(KINDS) - {"HEARTBEAT"}
    given = {
        "white-table-list": "public.t,*.u",
        "exclude-users": "ana",
        "skip-empty-xacts": "on",
        "enable-heartbeat": "on",
    }
    filters = wf.Options.gaussdb(given).filters
    assert filters == {"tables": ["public.t", "*.u"], "exclude_users": ["ana"], "skip_empty_xacts": True}
    for found in (plain, filters):
        assert list(wf.decode([], "gaussdb-binary", **found)) == []
        assert wf.arrow.changes([], "gaussdb-binary", **found).num_rows == 0


def test_the_filters_leave_out_what_the_server_would() -> None:
    user = {"include-user": True}
    ana = [wf.Begin(lsn=1, csn=1, first_lsn=1, username="ana"), wf.Commit(lsn=2, xid=1)]
    ben = [wf.Begin(lsn=3, csn=1, first_lsn=3, username="ben"), wf.Commit(lsn=4, xid=2)]
    beat = [wf.Heartbeat(wal_end=1, wal_flushed=1, time=1)]
    change = [wf.Insert(lsn=3, table_schema="s", table_name=name, new=wf.TupleData()) for name in "tu"]
    events = [ana[0], *change, ana[1], *beat, *ben, ben[0], *change, ben[1]]
    messages = list(wf.encode(events, "gaussdb-binary", options=user))
    given = {"white-table-list": "s.t", "exclude-users": "ana", "skip-empty-xacts": "on"}
    filters = wf.Options.gaussdb(given).filters
    assert list(wf.decode(messages, "gaussdb-binary", **filters)) == [ben[0], change[0], ben[1]]
    assert wf.arrow.changes(messages, "gaussdb-binary", **filters)["kind"].to_pylist() == ["BEGIN", "INSERT", "COMMIT"]


def test_the_table_has_a_row_for_each_option() -> None:
    rows = {row.option: row for row in wf.Options.table()}
    assert list(rows) == [spec.name for spec in OPTIONS]
    assert rows["include-timestamp"].default == "serial, sql: on; parallel: off"
    assert rows["include-user"].servers == "GaussDB"
    assert rows["parallel-queue-size"].values == "2..1024, a power of two"
    assert rows["slice-id"].needs == "data node, CSN order"
    for row in rows.values():
        assert row.sentence.endswith(".")
        assert all(need in REQUIREMENTS for need in filter(None, row.needs.split(", ")))


@given(st.integers(-5, 5000))
def test_powers_of_two(number: int) -> None:
    given = PARALLEL | {"parallel-queue-size": number}
    if number in [1 << power for power in range(1, 11)]:
        assert wf.Options.gaussdb(given).values["parallel-queue-size"] == number
    else:
        with pytest.raises(wf.OptionError, match=f"expected 2..1024, a power of two, got {number}"):
            wf.Options.gaussdb(given)
