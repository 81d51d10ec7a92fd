"""The streams that captures on Spark read: generated ones and those of servers, in several layouts of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import spark_udfs
import wireformat as wf
from spark_udfs.chunks.frames import Messages

from ..golden_cases import CASES
from ..servers.captures import capture_names, read_capture
from .raw_streams import (
    capture_of,
    expected,
    write_in_order,
    write_shuffled,
)

FORMATS = ("pgoutput", "test-decoding", "gaussdb-binary", "gaussdb-json", "mppdb-json")
READ_BY_WORKERS = "in order, read by the workers"
LAYOUTS = {"in order": (write_in_order, None), "shuffled": (write_shuffled, None), "many chunks": (write_shuffled, 7)}


@contextmanager
def as_in(layout: str) -> Iterator[None]:
    """In READ_BY_WORKERS, captures that are made in it read their files in the workers, although they are small."""
    with pytest.MonkeyPatch.context() as patch:
        if layout == READ_BY_WORKERS:
            patch.setattr("spark_udfs.chunks.frame_files.SMALL_BYTES", 0)
        yield


def are_read_by_workers(capture: spark_udfs.Capture) -> bool:
    """Whether the workers read the files of a DataFrame."""
    assert isinstance(capture._messages, Messages)
    _ = capture._messages.ranges
    return capture._messages._files is not None


@cache
def streams_of(format: str) -> dict[str, list[bytes]]:
    """Returns generated streams and captures of servers of a format, by name."""
    found = {}
    for seed in range(6):
        made = wf.testing.stream(3, 40, seed=seed, format=format)
        found[f"generated {seed}"] = [*wf.encode(made, format)]
    if format in ("pgoutput", "test-decoding"):
        names = [name for name in capture_names(format) if not name.endswith(("-all", "decoding-streaming"))]
        for name in names[:4]:
            found[name] = [*map(bytes, read_capture(name).messages)]
    else:
        found |= {
            case.name: [*map(bytes, case.messages)] for case in CASES if case.format == format and not case.reading
        }
    return {name: messages for name, messages in found.items() if readable(messages, format)}


def readable(messages: Sequence[bytes], format: str) -> bool:
    """Whether a stream has committed rows and no error."""
    try:
        return len(capture_of(messages, format).committed().read_all()) > 0
    except wf.WireformatError:
        return False


def of_one_machine(streams: dict[str, list[bytes]], format: str, ask: Any) -> pa.Table:
    return expected(streams, lambda name, messages: ask(capture_of(messages, format)))
