"""What bytes look like: every capture like its own format, or like none."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from wireformat.formats.guess import looks_like
from wireformat.formats.registry import ROWS, find_format
from wireformat.formats.row import PATTERNS, first_pattern

from ..golden_cases import CASES, Case
from ..servers.captures import capture_names, read_capture
from .test_corpora import FORMATS, lines

ENVELOPE = b"w" + bytes(24)
"""What a replication connection puts before each message of a plugin."""


def spans(case: Case) -> Iterator[tuple[bytes, int, int]]:
    """Every message of a capture, and every record in it."""
    format = find_format(case.format)
    for message in case.messages:
        yield message, 0, len(message)
        yield from ((message, frame.start, frame.stop) for frame in format.frames(message))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_captures_do_not_look_like_another_format(case: Case) -> None:
    for message, start, stop in spans(case):
        assert looks_like(message, start, stop, case.format) == "", message[start:stop]


@pytest.mark.parametrize("name", FORMATS)
def test_printed_lines_do_not_look_like_another_format(name: str) -> None:
    for line in lines(name):
        assert looks_like(line, 0, len(line), FORMATS[name][0]) == "", line


@pytest.mark.parametrize("name", capture_names("pgoutput"))
def test_captures_of_postgres_do_not_look_like_another_format(name: str) -> None:
    for message in read_capture(name).messages:
        for data in (message, ENVELOPE + message):
            assert looks_like(data, 0, len(data), "pgoutput") == "", data


def test_every_pattern_is_matched_first_by_a_capture() -> None:
    heads = [message[start:stop][:600] for case in CASES for message, start, stop in spans(case)]
    heads += [line[:600] for name in FORMATS for line in lines(name)]
    heads += [ENVELOPE + message for message in read_capture("18-pgoutput-1").messages]
    assert set(PATTERNS) <= {first_pattern(head) for head in heads}


def test_rows_name_patterns_that_there_are() -> None:
    assert {name for row in ROWS.values() for name in row.signatures} == set(PATTERNS)


def test_all_patterns_at_once_find_the_first_that_matches() -> None:
    """No pattern has a group of its own, by which the others would be counted wrongly."""
    assert all(re.compile(pattern, re.DOTALL).groups == 0 for pattern in PATTERNS.values())
    heads = [
        bytes([byte]) + rest for byte in range(256) for rest in (b"", bytes(30), b"EGIN 1", b"OMMIT 1 CSN 2", b"\0F\0")
    ]
    for head in heads:
        matching = [name for name, pattern in PATTERNS.items() if re.compile(pattern, re.DOTALL).match(head)]
        assert first_pattern(head) == (matching[0] if matching else None)
