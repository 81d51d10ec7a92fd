"""Values that were not sent, in the first row of a table with a new column: their types are those of earlier rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import wireformat as wf

BEFORE = [b"BEGIN 1", b"table public.t: INSERT: id[integer]:1 long[text]:'L'", b"COMMIT 1"]
AFTER = [
    b"BEGIN 2",
    b"table public.t: UPDATE: id[integer]:1 long[text]:unchanged-toast-datum added[text]:'n'",
    b"COMMIT 2",
]
ROW = {"id": 1, "long": "L", "added": "n"}


def in_style(messages: list[bytes], format: str) -> list[bytes]:
    is_opengauss = format == "opengauss-test-decoding"
    return [one + b" CSN 1" if is_opengauss and one.startswith(b"COMMIT") else one for one in messages]


@pytest.mark.parametrize("engine", ["scan", "declaration"])
@pytest.mark.parametrize("format", ["test-decoding", "opengauss-test-decoding"])
def test_verbs(format: str, engine: str) -> None:
    capture = wf.Capture(in_style(BEFORE + AFTER, format), format, engine=engine)
    assert capture.tables()["types"].to_pylist() == [["integer", "text"], ["integer", "text", "text"]]
    typed = capture.typed("public.t").read_all().select([*ROW, "_unchanged"]).to_pylist()
    assert typed == [ROW | {"added": None, "_unchanged": ["added"]}, ROW | {"long": None, "_unchanged": ["long"]}]
    assert capture.latest("public.t", keys=["id"]).select([*ROW]).to_pylist() == [ROW]


@pytest.mark.parametrize("state", ["changes", "latest"])
def test_a_lake_in_two_writes(state: str, tmp_path: Path) -> None:
    keys = ["id"] if state == "latest" else None
    wf.Capture(BEFORE, "test-decoding").write(tmp_path, format="delta", state=state, keys=keys)
    later = wf.Capture(AFTER, "test-decoding", after=wf.lake.position(tmp_path))
    assert later.write(tmp_path, format="delta", state=state, keys=keys)["rows"].to_pylist() == [1]


def test_a_type_that_no_row_says_is_not_guessed() -> None:
    with pytest.raises(wf.BadRows, match="rows that name the types of their values"):
        wf.Capture(AFTER, "test-decoding").typed("public.t")


def test_later_rows_say_another_type() -> None:
    """The column was added again between the rows; which type it had is then only a guess."""
    update = b"UPDATE: id[integer]:1 long[integer[]]:unchanged-toast-datum x[text]:unchanged-toast-datum y[text]:'1'"
    insert = b"INSERT: id[integer]:2 long[integer[]]:'{1}' x[text]:'x' y[text]:'2'"
    messages = [*BEFORE, b"BEGIN 2", b"table public.t: " + update, b"table public.t: " + insert, b"COMMIT 2"]
    capture = wf.Capture(messages, "test-decoding")
    assert capture.tables()["types"].to_pylist() == [
        ["integer", "text"],
        ["integer", "integer[]", "text", "text"],
    ]
    rows = capture.typed("public.t").read_all()
    assert rows["x"].to_pylist() == [None, None, "x"]
    assert rows["long"].to_pylist() == ["L", None, "{1}"]
