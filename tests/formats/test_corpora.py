"""Lines that servers printed: each one is read, and written again as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wireformat as wf

from ..accounting import EVERYTHING
from ..codec_checks import check_pieces
from ..engines import agree, read

FOLDER = Path(__file__).parent.parent / "corpora"
FORMATS = {
    "opengauss_text": ("opengauss-test-decoding", 94),
    "opengauss_mppdb_json": ("mppdb-json", 55),
    "opengauss_sql": ("sql-decoding", 8),
    "postgres_test_decoding": ("test-decoding", 165),
    "postgres_server_runs": ("test-decoding", 227),
    "postgres_unreleased_sequence": ("test-decoding", 5),
}
UNKNOWN = {"postgres_unreleased_sequence"}
"""Records that no release prints."""

WRITTEN_OTHERWISE = {
    b"""table "public"."strs": INSERT: "id"[integer]:16 "v"["text"]:'q' "w"["text"]:null""": (
        b"""table public.strs: INSERT: id[integer]:16 v["text"]:'q' w["text"]:null"""
    )
}
"""Under quote_all_identifiers every name is quoted, and nothing in an event says so."""


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
    assert all(isinstance(event, wf.Unknown) == (name in UNKNOWN) for event in answer.events)
    written = [WRITTEN_OTHERWISE.get(message, message) for message in messages]
    assert list(wf.encode(answer.events, format, options=EVERYTHING[format])) == written


@pytest.mark.slow
def test_as_a_file_of_a_client() -> None:
    """All records that PostgreSQL prints, each with a line feed behind it; many hold line feeds of their own."""
    messages = [line for name in ("postgres_test_decoding", "postgres_server_runs") for line in lines(name)]
    events = read(messages, format="test-decoding")
    assert sum(b"\n" in message for message in messages) > 10
    data = b"".join(message + b"\n" for message in messages)
    for width in (1, 7, 1000, len(data)):
        pieces = [data[place : place + width] for place in range(0, len(data), width)]
        check_pieces(pieces, events, format="test-decoding")
