"""Lines that servers printed: each one is read, and written again as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wireformat as wf

from ..accounting import EVERYTHING
from ..engines import agree

FOLDER = Path(__file__).parent.parent / "corpora"
FORMATS = {
    "opengauss_text": ("opengauss-test-decoding", 94),
    "opengauss_mppdb_json": ("mppdb-json", 55),
    "opengauss_sql": ("sql-decoding", 8),
}


def lines(name: str) -> list[bytes]:
    with (FOLDER / f"{name}.jsonl").open(encoding="ascii") as file:
        return [json.loads(line)["line"].encode() for line in file]


def test_no_file_is_left_out() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_every_line_is_read_and_written_again(name: str) -> None:
    format, count = FORMATS[name]
    messages = lines(name)
    answer = agree(messages, format=format)
    assert len(answer.events) == len(messages) == count
    assert not any(isinstance(event, wf.Unknown) for event in answer.events)
    assert list(wf.encode(answer.events, format, options=EVERYTHING[format])) == messages
