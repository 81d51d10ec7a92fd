"""The scan of test-decoding: what comes often it reads itself, and it reads it as the grammar does."""

from __future__ import annotations

import pytest

import wireformat as wf
from wireformat.arrow.engine.scanner import Scanner
from wireformat.formats.registry import find_format
from wireformat.options import ReadOptions

from ...engines import agree

FORMAT = "test-decoding"

OFTEN = [
    b"BEGIN",
    b"BEGIN 741",
    b"table public.t: INSERT: id[integer]:1 v[text]:'it''s' w[numeric]:null",
    b"table \"S\".t: UPDATE: old-key: a[bit]:B'1' new-tuple: a[text]:unchanged-toast-datum",
    b"table s.t: DELETE: (no-tuple-data)",
    b"table s.with_oids: INSERT: oid[oid]:4294967295 a[integer]:1",
    b"COMMIT",
    b"COMMIT 741 (at 2026-11-21 01:02:03.5-03:30)",
    b"opening a streamed block for transaction TXN 812",
    b"streaming change for TXN 4294967295",
    b"streaming change for transaction",
    b"closing a streamed block for transaction",
    b"committing streamed transaction TXN 5 (at 2026-11-21 01:02:03+00)",
    b"aborting streamed (sub)transaction TXN 5",
    b"PREPARE TRANSACTION 'a gid', txid 5 (at 2026-11-21 01:02:03+00)",
    b"COMMIT PREPARED 'g', txid 5 (at 2026-11-21 01:02:03+00)",
    b"ROLLBACK PREPARED ''",
    b"preparing streamed transaction TXN 'g', txid 5 (at 2026-11-21 01:02:03+00)",
    b"preparing streamed transaction 'g'",
    b"message: transactional: 1 prefix: p, sz: 1 content:a",
    b"message: transactional: 0 prefix: , sz: 0 content:",
    b"message: transactional: 1 prefix: p, sz: 9 content:a, sz: 7 content:c, sz: 3 content:d\xff\n",
    b"message: transactional: 1 prefix: p, sz: 3 content:\xff\x00\x9a",
    b"message: transactional: 1 prefix: p, sz: 2 content:\xc3\xa9",
    b"streaming message: transactional: 1 prefix: p, sz: 4, sz: 1234567890",
    b"table s.t, s.u: TRUNCATE: (no-flags)",
]
SELDOM = [
    b"COMMIT PREPARED 'it''s', txid 5",
    b"COMMIT PREPARED E'a\\\\b', txid 5",
    b"streaming truncate for TXN 5",
    b"streaming message: transactional: 1 prefix: p, sz: 007",
]
NUMBERS = [0, 4294967295, 4294967296, "0000000005", "00000000005", 10**18, 10**30, "", "-1", "5 "]


def left_to_the_grammar(messages: list[bytes]) -> int:
    scanner = Scanner(find_format(FORMAT), ReadOptions())
    return sum(len(scanned.events) for scanned in scanner.scan(messages))


def test_what_comes_often_is_left_to_nobody() -> None:
    assert left_to_the_grammar(OFTEN) == 0
    assert left_to_the_grammar(SELDOM) == len(SELDOM)


def test_both_read_the_same() -> None:
    answer = agree(OFTEN + SELDOM, format=FORMAT)
    assert not any(isinstance(event, wf.Unknown) for event in answer.events)
    assert answer.table is not None
    assert answer.table["xid"].to_pylist()[1] == 741
    assert answer.table["commit_time"].to_pylist()[7].isoformat() == "2026-11-21T04:32:03.500000+00:00"
    contents = [event.content for event in answer.events if isinstance(event, wf.Message)]
    assert contents == ["a", "", b"d\xff\n", b"\xff\x00\x9a", "é", None, None]


@pytest.mark.parametrize(
    "message",
    [
        b"message: transactional: 1 prefix: p, sz: 22 content:, sz: 0 content:",
        b"message: transactional: 1 prefix: p, sz: 3 content:, sz: 0 content:",
        b"message: transactional: 1 prefix: p, sz: 00000000001 content:a",
        b"message: transactional: 1 prefix: p, sz: 0000000001 content:a",
        b"message: transactional: 1 prefix: p, sz: content:",
        b"message: transactional: 2 prefix: p, sz: 1 content:a",
        b"message: transactional: 1 prefix: \xff, sz: 1 content:a",
        b"message: transactional: 1 prefix: \xc3\xa9, sz: 1 content:\xff",
        b"streaming message: transactional: 1 prefix: \xc3\xa9, sz: 12345678901",
        b"streaming message: transactional: 1 prefix: p, sz: ",
        b"streaming message: transactional: 1 prefix: , sz: 1",
        b"COMMIT PREPARED 'a'', txid 5",
        b"COMMIT PREPARED 'a', txid",
        b"COMMIT PREPARED '\xff'",
        b"PREPARE TRANSACTION 'a' (at 'b')) (at c)",
        b"ROLLBACK PREPARED",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "latin-1"])
@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_odd_lines(message: bytes, encoding: str, errors: str) -> None:
    """And what they look like cut short, and as part of a batch with good lines."""
    cut = [message[:stop] for stop in range(8, len(message))]
    lines = [*OFTEN, message, *cut, *OFTEN]
    agree(lines, format=FORMAT, mode="PERMISSIVE", encoding=encoding, encoding_errors=errors)


@pytest.mark.parametrize(
    "before", ["BEGIN ", "COMMIT ", "streaming change for TXN ", "closing a streamed block for transaction TXN "]
)
def test_numbers(before: str) -> None:
    messages = [f"{before}{number}".encode() for number in NUMBERS]
    answer = agree(messages, format=FORMAT, mode="PERMISSIVE")
    good = [event for event in answer.events if not isinstance(event, wf.Corrupt)]
    assert [getattr(event, "xid", None) for event in good] == [0, 4294967295, 5]


@pytest.mark.parametrize(
    "options",
    [
        {"kinds": ["STREAM_CHANGE", "MESSAGE"]},
        {"kinds": ["BEGIN", "TRUNCATE"], "tables": ["s.u"]},
        {"tables": []},
        {"skip_empty_xacts": True},
        {"encoding": "gbk"},
        {"encoding": "latin-1", "encoding_errors": "replace"},
    ],
    ids=str,
)
def test_filters_and_encodings(options: dict[str, object]) -> None:
    agree([*OFTEN, *SELDOM, "table s.\"é\": INSERT: a[text]:'ü'".encode("gbk", "ignore")], format=FORMAT, **options)
