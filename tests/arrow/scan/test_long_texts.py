"""Texts that are longer than the blocks in which scans read them, with escapes anywhere in them, also wrong ones."""

from __future__ import annotations

import random

import pytest

import wireformat as wf
from wireformat.arrow.jit.intrinsics import BLOCK

from ...engines import agree

FORMATS = ("gaussdb-json", "gaussdb-text", "mppdb-json", "opengauss-test-decoding", "sql-decoding", "test-decoding")
BEFORE = "plain, plain, plain, plain, plain "
PIECES = ("'", '"', "\\", "\n", "\t", "\x1f", "'\"", "''", '\\"', "表'格\"", "'\n'", "a'", "\x01\\")


def messages_of(format: str, texts: list[str]) -> list[bytes]:
    """A message for each text. An INSERT of sql-decoding names no columns."""
    events = [
        wf.Insert(
            table_schema="s",
            table_name="t",
            new=wf.TupleData(("$1",), (text,), ("?string" if format == "sql-decoding" else "text",)),
        )
        for text in texts
    ]
    return [message for event in events for message in wf.encode([event], format)]


@pytest.mark.parametrize("format", FORMATS)
def test_escapes_at_each_offset(format: str) -> None:
    texts = [BEFORE[:size] + piece * times for size in range(BLOCK + 2) for piece in PIECES for times in (1, 2, 40)]
    texts += [piece * times + BEFORE[:size] for size in (1, BLOCK, 33) for piece in PIECES for times in (1, 15, 40)]
    answer = agree(messages_of(format, texts), format=format)
    assert answer.table is not None
    assert [dict(row)["$1"] for row in answer.table["new"].to_pylist()] == texts


@pytest.mark.parametrize("format", FORMATS)
def test_wrong_bytes_at_each_offset(format: str) -> None:
    choose = random.Random(7)
    text = "".join(BEFORE[: choose.randrange(20)] + choose.choice(PIECES) for _ in range(12))
    (message,) = messages_of(format, [text])
    wrong = [
        message[:at] + byte + message[at + 1 :] for at in range(len(message)) for byte in (b"'", b'"', b"\\", b"\n")
    ]
    agree(wrong + [message[:at] for at in range(len(message))], format=format, mode="PERMISSIVE")
