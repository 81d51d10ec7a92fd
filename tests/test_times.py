"""Commit times and heartbeat times, against datetime and against cases worked out by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow import commit_times
from wireformat.arrow.commit_times import parse_times
from wireformat.arrow.scan.binary_text.forms import TIMESTAMPTZ_FORM
from wireformat.arrow.scan.binary_text.times import write_moment
from wireformat.pgtypes.binary import date_text, timestamp_text, timestamp_zone_text
from wireformat.times import (
    FIRST_MICROS,
    LAST_MICROS,
    MICROS_OF_2000,
    heartbeat_micros,
    parse_commit_time,
    table_time,
    time_text,
)

from . import handmade_pgoutput as pgoutput
from . import strategies
from .engines import ENGINES, FORMAT, agree
from .handmade import commit, heartbeat, message, time

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
DAY = 86_400_000_000
HOUR = 3_600_000_000
INT64_MAX = (1 << 63) - 1


def parsed(text: str) -> int | None:
    """Microseconds, or None: of one text and of a column, which must agree."""
    found = table_time(parse_commit_time(text))
    for texts in ([text], [text, "2026-11-21 01:02:03+08", text]):
        micros, known = parse_times(pa.array(texts))
        assert [one if is_one else None for one, is_one in zip(micros, known, strict=True)] == [
            found if one is text else 1_795_194_123_000_000 for one in texts
        ]
    return parse_commit_time(text)


@given(
    st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29)),  # noqa: DTZ001 - the offset is drawn
    st.integers(-57599, 57599),
    st.booleans(),
)
def test_as_datetime_says(local: datetime, offset: int, trimmed: bool) -> None:
    """Printed as the servers print: the fraction trimmed, the offset as short as it can be."""
    fraction = f"{local.microsecond:06}"
    fraction = fraction.rstrip("0") if trimmed else fraction
    hours, minutes, seconds = abs(offset) // 3600, abs(offset) // 60 % 60, abs(offset) % 60
    zone = f"{'-' if offset < 0 else '+'}{hours:02}"
    if minutes or seconds:
        zone += f":{minutes:02}"
    if seconds:
        zone += f":{seconds:02}"
    text = f"{local.year:04}-{local:%m-%d %H:%M:%S}{'.' if fraction else ''}{fraction}{zone}"
    utc = local.replace(tzinfo=timezone(timedelta(seconds=offset)))
    assert parsed(text) == (utc - EPOCH) // timedelta(microseconds=1)


GOOD = {
    "1970-01-01 00:00:00+00": 0,
    "1970-01-01 00:00:00-00": 0,
    "1970-01-01 08:00:00+08": 0,
    "1970-01-01 00:00:00+05:30": -19_800_000_000,
    "1970-01-01 00:00:00+05:53:28": -21_208_000_000,
    "1969-12-31 18:06:32-05:53:28": 0,
    "1969-12-31 23:59:59.999999+00": -1,
    "1970-01-01 00:00:00.5+00": 500_000,
    "1970-01-01 00:00:00.000001+00": 1,
    "1970-01-01 00:00:00.10+00": 100_000,
    "2000-02-29 00:00:00+00": 11_016 * DAY,
    "2100-02-28 23:59:59+00": 47_541 * DAY - 1_000_000,
    "2026-11-21 01:02:03.123456+08": 1_795_194_123_123_456,
    "0001-01-01 00:00:00+00": -719_162 * DAY,
    "0001-12-31 00:00:00+00 BC": -719_163 * DAY,
    "0001-02-29 00:00:00+00 BC": -(719_162 + 366 - 59) * DAY,
    "4713-01-01 00:00:00+00 BC": -2_440_550 * DAY,
    "10000-01-01 00:00:00+00": 2_932_897 * DAY,
    "294246-12-31 23:59:59.999999+00": INT64_MAX - 9 * DAY - 4 * HOUR - 54_775_808,
}
"""Worked out by hand: day numbers from the calendar, not from this package."""

BAD = [
    "",
    "infinity",
    "-infinity",
    "(timestamp out of range)",
    "2026-11-21",
    "2026-11-21 01:02:03",
    "2026-11-21 01:02:03.+08",
    "2026-11-21 01:02:03.1234567+08",
    "2026-11-21 01:02:03+8",
    "2026-11-21 01:02:03+080",
    "2026-11-21 01:02:03+08:",
    "2026-11-21 01:02:03+08:60",
    "2026-11-21 01:02:03+08:00:60",
    "2026-11-21 01:02:03+08:00:00:00",
    "2026-11-21 01:02:03 +08",
    "2026-11-21 01:02:03+08 AD",
    "2026-11-21 01:02:03+08 BCE",
    "2026-11-21 01:02:03+08BC",
    "2026-11-21T01:02:03+08",
    "2026-11-21 01:02:03Z",
    " 2026-11-21 01:02:03+08",
    "2026-11-21 01:02:03+08 ",
    "2026-13-01 01:02:03+08",
    "2026-00-01 01:02:03+08",
    "2026-01-00 01:02:03+08",
    "2026-04-31 01:02:03+08",
    "2026-02-29 01:02:03+08",
    "2100-02-29 01:02:03+08",
    "2026-01-01 24:02:03+08",
    "2026-01-01 01:60:03+08",
    "2026-01-01 01:02:60+08",
    "26-01-01 01:02:03+08",
    "2026-1-01 01:02:03+08",
    "1234567-01-01 01:02:03+08",
    "300000-01-01 00:00:00+00",
    "-2026-01-01 01:02:03+08",
    "٢٠٢٦-01-01 01:02:03+08",
    "2026-11-21 01:02:03+08\0",
]


@pytest.mark.parametrize("text", GOOD)
def test_worked_out_by_hand(text: str) -> None:
    assert parsed(text) == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_time(text: str) -> None:
    assert parsed(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "294276-12-31 23:59:59.999999+00",
        "294276-12-31 23:59:59-15:59:59",
        "294247-01-10 04:00:54.775807+00",
        "294247-01-10 04:00:54.775808+00",
        "290309-12-21 19:59:06+00 BC",
        "290309-12-21 19:59:05+00 BC",
        "290308-12-21 19:59:05.224192+00 BC",
        "290308-12-21 19:59:05.224191+00 BC",
        "999999-12-31 23:59:59+00 BC",
        "0000-01-01 00:00:00+00",
        "0000-01-01 00:00:00+00 BC",
    ],
)
def test_times_at_the_ends_fit_the_column_or_are_none(text: str) -> None:
    """What no server prints, or int64 cannot hold, is the same for both engines, and no accident."""
    found = parsed(text)
    assert found is None or -(1 << 63) <= found <= INT64_MAX
    assert agree([message(commit(time(text.encode())))]).events == [wf.Commit(lsn=0x10, commit_time=text)]


@given(st.lists(strategies.TIMES | st.text(max_size=30), min_size=1, max_size=10))
def test_engines_agree_on_any_text(texts: list[str]) -> None:
    agree([message(*[commit(time(text.encode())) for text in texts])])


@given(st.from_regex(r"(?a)\A\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d){0,2}( BC)?\Z"))
def test_what_is_parsed_fits_int64(text: str) -> None:
    found = parsed(text)
    assert found is None or -(1 << 63) <= found <= INT64_MAX


def instants() -> Iterator[int]:
    """Every day of 400 years with some clock, the ends of every year that Python knows, and those of the years."""
    days = 146_097
    for day in range(-days // 2, days - days // 2):
        yield day * DAY + (day * 7_919_123_457 + day % 3 * 500_000) % DAY
    for year in range(1, 10_000):
        first = (datetime(year, 1, 1, tzinfo=timezone.utc) - EPOCH) // timedelta(microseconds=1)
        yield from (micros for micros in (first - 1, first, first + 59 * DAY) if micros >= FIRST_MICROS)
    yield from (FIRST_MICROS, LAST_MICROS, *(10**digits for digits in range(15)))


def test_times_as_compiled_code_writes_them() -> None:
    """The fast form is the text that `time_text` gives, which is the text that datetime gives."""
    times = [*instants()]
    begins = [struct.pack(">cQqI", b"B", 1, micros - MICROS_OF_2000, 5) for micros in times]
    table = wf.arrow.changes(begins, "pgoutput", columns=["commit_time", "detail"])
    assert table["commit_time"].cast(pa.int64()).to_pylist() == times
    texts = pc.map_lookup(table["detail"], "commit_time", "first").to_pylist()
    assert texts == [*map(time_text, times)]
    for micros, text in zip(times[::97], texts[::97], strict=True):
        room = np.zeros(40, np.uint8)
        assert room[: write_moment(room, 0, micros - MICROS_OF_2000, TIMESTAMPTZ_FORM)].tobytes().decode() == text
        assert datetime.fromisoformat(padded(text)) == EPOCH + timedelta(microseconds=micros)


def padded(text: str) -> str:
    """With all digits of the fraction and of the offset, which datetime wants before Python 3.11."""
    clock, zone = text[:-3], text[-3:]
    return f"{clock if '.' in clock else clock + '.'}{'0' * 6}"[:26] + f"{zone}:00"


def test_times_in_binary_cells_as_compiled_code_writes_them() -> None:
    columns = [pgoutput.column(name, oid) for name, oid in ((b"d", 1082), (b"t", 1114), (b"z", 1184))]
    numbers = [micros - MICROS_OF_2000 for micros in [*instants()][::11]]
    cells = [(struct.pack(">i", number // DAY), *[struct.pack(">q", number)] * 2) for number in numbers]
    rows = [pgoutput.change(b"I", pgoutput.image(b"N", *map(pgoutput.binary, row))) for row in cells]
    table = wf.arrow.changes([pgoutput.relation(*columns), *rows], "pgoutput", kinds=["INSERT"], columns=["new"])
    for name, text in (("d", date_text), ("t", timestamp_text), ("z", timestamp_zone_text)):
        at = "dtz".index(name)
        assert pc.map_lookup(table["new"], name, "first").to_pylist() == [text(row[at]) for row in cells]


@given(st.lists(st.sampled_from([*GOOD, *BAD]), max_size=200))
def test_columns_of_all_forms(texts: list[str]) -> None:
    """Forms that Arrow reads, forms that it does not, and texts that are no times, in any mixture."""
    micros, known = parse_times(pa.array(texts, pa.string()))
    found = [one if is_one else None for one, is_one in zip(micros.tolist(), known.tolist(), strict=True)]
    assert found == [table_time(parse_commit_time(text)) for text in texts]
    assert not any(one for one, is_one in zip(micros.tolist(), known.tolist(), strict=True) if not is_one)


@pytest.mark.parametrize("odd", ["infinity", "2026-11-21 01:02:03", "2026-04-31 01:02:03+08", ""])
def test_one_odd_time_does_not_send_the_others_to_python(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one odd time among them, a whole column was read one by one, thirty times slower."""
    read: list[str] = []
    monkeypatch.setattr(commit_times, "parse_commit_time", read.append)
    texts = [f"2026-11-21 01:02:03.{number:06}+00" for number in range(1000)]
    texts[500] = odd
    _, known = parse_times(pa.array(texts))
    assert int(known.sum()) >= len(texts) - commit_times.FEW_TIMES
    assert len(read) <= commit_times.FEW_TIMES


@given(st.integers(parse_commit_time("4713-01-01 00:00:00+00 BC"), INT64_MAX))
def test_a_time_is_read_as_it_was_written(micros: int) -> None:
    text = time_text(micros)
    assert text is None if micros > GOOD["294246-12-31 23:59:59.999999+00"] else parse_commit_time(str(text)) == micros
    assert time_text(-2_440_550 * DAY - 1) is None


GUESSES = {
    0: 0,
    1_700_000_000: 1_700_000_000_000_000,
    1_700_000_000_000: 1_700_000_000_000_000,
    1_700_000_000_000_000: 1_700_000_000_000_000,
    -1_000_000_000: -1_000_000_000_000_000,
    INT64_MAX: INT64_MAX,
    -(1 << 63): -(1 << 63),
}
UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@pytest.mark.parametrize("number", GUESSES)
def test_heartbeat_units_are_guessed_by_size(number: int) -> None:
    assert heartbeat_micros(number, 0) == GUESSES[number]


EDGES = [
    edge + step
    for edge in (
        *(0, INT64_MAX, -(1 << 63), 10**11, 10**14, -(10**11), -(10**14)),
        *(limit // unit for limit in (FIRST_MICROS, LAST_MICROS, INT64_MAX, -(1 << 63)) for unit in UNITS.values()),
    )
    for step in (-2, -1, 0, 1, 2)
    if -(1 << 63) <= edge + step <= INT64_MAX
]
"""Where a unit is guessed differently, and where times, or their microseconds, end."""


@given(st.sampled_from(EDGES) | strategies.I64, st.sampled_from([None, *UNITS]))
def test_heartbeat_times(number: int, unit: str | None) -> None:
    """The row's commit_time is the number in its unit, or null where that does not fit; the number stays in detail."""
    check_heartbeats([number], unit)


@pytest.mark.parametrize("unit", [None, *UNITS])
def test_heartbeat_times_at_the_edges(unit: str | None) -> None:
    check_heartbeats(EDGES, unit)


def check_heartbeats(numbers: list[int], unit: str | None) -> None:
    batched = [message(heartbeat(1, 2, number)) for number in numbers]
    bare = [heartbeat(3, 4, number) + b"F" for number in numbers]
    table = agree([*batched, *bare], heartbeat_unit=unit).table
    assert table is not None
    assert [dict(detail)["time"] for detail in table["detail"].to_pylist()] == [str(number) for number in numbers] * 2
    times = table["commit_time"].cast(pa.int64()).to_pylist()
    wanted = [table_time(heartbeat_micros(number, UNITS[unit] if unit else 0)) for number in numbers]
    assert times == wanted * 2
    if unit is not None:
        exact = [number * UNITS[unit] for number in numbers]
        assert wanted == [one if FIRST_MICROS <= one <= LAST_MICROS else None for one in exact]


@pytest.mark.parametrize("unit", [None, *UNITS])
def test_keepalive_times(unit: str | None) -> None:
    """They count from 2000, and may lead out of 64 bits if they are counted from 1970."""
    edges = [*EDGES, *(INT64_MAX - MICROS_OF_2000 + step for step in (-1, 0, 1))]
    table = agree([pgoutput.keepalive(1, edge, 0) for edge in edges], format="pgoutput", heartbeat_unit=unit).table
    assert table is not None
    micros = [edge + MICROS_OF_2000 for edge in edges]
    assert [dict(detail)["time"] for detail in table["detail"].to_pylist()] == list(map(str, micros))
    wanted = [table_time(heartbeat_micros(one, UNITS[unit] if unit else 0)) for one in micros]
    assert table["commit_time"].cast(pa.int64()).to_pylist() == wanted


def test_the_years_that_python_can_say() -> None:
    first, last = (one.replace(tzinfo=timezone.utc) - EPOCH for one in (datetime.min, datetime.max))  # noqa: DTZ901
    assert [one // timedelta(microseconds=1) for one in (first, last)] == [FIRST_MICROS, LAST_MICROS]


SAYABLE = {
    "9999-12-31 23:59:59.999999+00": LAST_MICROS,
    "9999-12-31 23:59:59.999999-00:00:01": None,
    "10000-01-01 00:00:00+00": None,
    "10000-01-01 07:59:59.999999+08": LAST_MICROS,
    "9999-12-31 15:59:59.999999-08": LAST_MICROS,
    "9999-12-31 16:00:00-08": None,
    "294246-12-31 23:59:59.999999+00": None,
    "0001-01-01 00:00:00+00": FIRST_MICROS,
    "0001-01-01 00:00:00+00:00:01": None,
    "0001-12-31 16:00:00-08 BC": FIRST_MICROS,
    "0001-12-31 23:59:59.999999+00 BC": None,
}


@pytest.mark.parametrize("others", [[], ["2026-11-21 01:02:03+08"]], ids=["alone", "beside another"])
@pytest.mark.parametrize("text", SAYABLE)
def test_a_commit_time_that_python_cannot_say_is_null(text: str, others: list[str]) -> None:
    """In every format that has one, and whole tables can be made Python values."""
    texts = [text, *others]
    tables = [
        agree([message(*[commit(time(text.encode())) for text in texts])]).table,
        agree([f"COMMIT 5 (at {text})".encode() for text in texts], format="test-decoding").table,
        agree([f"commit xid: 5 (at {text})".encode() for text in texts], format="gaussdb-json").table,
    ]
    in_utc = [table_time(parse_commit_time(text)) for text in texts]
    commits = [wf.Commit(commit_lsn=5, end_lsn=6, commit_time=text) for text in texts]
    tables.append(agree(list(wf.encode(commits, "pgoutput")), format="pgoutput").table)
    for table in tables:
        assert table is not None
        assert in_utc[0] == SAYABLE[text]
        assert table["commit_time"].cast(pa.int64()).to_pylist() == in_utc
        assert [row["commit_time"] is None for row in table.to_pylist()] == [micros is None for micros in in_utc]
        assert all(dict(row["detail"])["commit_time"] for row in table.to_pylist())


def test_a_prepare_time_that_python_cannot_say_is_null() -> None:
    lines = [
        b"BEGIN 5",
        b"table s.t: INSERT: a[integer]:1",
        b"PREPARE TRANSACTION 'g', txid 5 (at 294246-12-31 23:59:59+00)",
    ]
    rows = wf.arrow.transactions(wf.arrow.changes(lines, "test-decoding"), two_phase="prepare").to_pylist()
    assert [row["commit_time"] for row in rows] == [None]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_commit_time_that_is_none_stays_in_detail(engine: str) -> None:
    table = wf.arrow.changes([message(commit(time(b"infinity")))], FORMAT, engine=engine)
    assert table["commit_time"].to_pylist() == [None]
    assert table["detail"].to_pylist() == [[("commit_time", "infinity")]]
