"""The errors of a capture say where they are, and come as early as they can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf

from ..golden_cases import find_case
from .streams import CUT, stream, without_positions


def test_a_falling_position_names_both_files(tmp_path: Path) -> None:
    case = find_case("b_num63_single")
    messages, format = case.messages, case.format
    kinds = [event.kind for event in wf.decode(messages, format)]
    assert len(kinds) == len(messages)
    half = next(index + 1 for index, kind in enumerate(kinds) if kind == "COMMIT" and index > len(kinds) // 2)
    pq.write_table(pa.table({"payload": messages[half:]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"payload": messages[:half]}), tmp_path / "2.parquet")
    with pytest.raises(wf.OrderError, match=r"1\.parquet, at csn \d+, got .*2\.parquet, which begins at \d"):
        wf.Capture(tmp_path, format).committed().read_all()
    in_order = wf.Capture([tmp_path / "2.parquet", tmp_path / "1.parquet"], format)
    assert without_positions(in_order.committed().read_all()) == without_positions(
        wf.Capture(messages, format).committed().read_all()
    )


def test_an_error_names_its_file(tmp_path: Path) -> None:
    messages, _ = stream("18-pgoutput-1")
    pq.write_table(pa.table({"payload": [*messages, CUT]}), tmp_path / "bad.parquet")
    with pytest.raises(wf.DecodeError, match=r"source .*bad\.parquet, message") as error:
        wf.Capture(tmp_path, "pgoutput").changes(kinds=["INSERT"]).read_all()
    assert error.value.source == str(tmp_path / "bad.parquet")


def test_an_error_of_the_order_comes_with_the_rows() -> None:
    """Not with the list of tables, which is there all the same."""
    messages, format = stream("18-pgoutput-1")
    begins = [index for index, message in enumerate(messages) if message[:1] == b"B"]
    capture = wf.Capture([*messages[: begins[-1]], *messages[begins[-1] + 1 :]], format)
    rows = capture.typed("public.by_key")
    assert rows.schema.names[0] == "id"
    with pytest.raises(wf.OrderError):
        rows.read_all()


def test_a_missing_table_names_near_ones() -> None:
    messages, format = stream("18-pgoutput-1")
    with pytest.raises(wf.BadRows, match="did you mean"):
        wf.Capture(messages, format).typed("public.by_keys")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "NONE"}, "option mode"),
        ({"threads": 0}, "option threads"),
        ({"engine": "none"}, "option engine"),
        ({"two_phase": "x"}, "option two_phase"),
        ({"after": 5}, "option after"),
        ({"memory_limit": -1}, "option memory_limit"),
    ],
)
def test_options_are_checked_at_once(options: dict[str, Any], text: str) -> None:
    with pytest.raises(wf.OptionError, match=text):
        wf.Capture([], "pgoutput", **options)
