"""The table of lines: every shape of every release, read and written."""

from __future__ import annotations

from dataclasses import replace

import pytest

import wireformat as wf
from wireformat.lsn import lsn_value

from ..accounting import EVERYTHING
from ..engines import agree, read

LSN = lsn_value("0/CFE5C80")
TIME = "2026-11-21 01:02:03.5+08"
FULL = {"xid": 78108, "commit_time": TIME, "origin": -1}

PARALLEL = {
    "BEGIN CSN: 1 first_lsn: 0/CFE5C80": wf.Begin(csn=1, first_lsn=LSN),
    f"BEGIN CSN: 1 first_lsn: 0/CFE5C80 xid: 78108 commit_time: {TIME} origin_id: -1": wf.Begin(
        csn=1, first_lsn=LSN, **FULL
    ),
    "BEGIN CSN: 1 first_lsn: 0/CFE5C80 origin_id: 3": wf.Begin(csn=1, first_lsn=LSN, origin=3),
    "commit": wf.Commit(),
    "commit xid: 5": wf.Commit(xid=5),
    f"commit (at {TIME})": wf.Commit(commit_time=TIME),
    "commit xid: 5 (at infinity)": wf.Commit(xid=5, commit_time="infinity"),
    "commit xid: 5 (at (timestamp out of range))": wf.Commit(xid=5, commit_time="(timestamp out of range)"),
}
_SERIAL = {
    "COMMIT": wf.Commit(),
    "COMMIT 5": wf.Commit(xid=5),
    "COMMIT 1010024 CSN 1010023": wf.Commit(xid=1010024, csn=1010023),
    f"COMMIT (at {TIME})": wf.Commit(commit_time=TIME),
    f"COMMIT 5 (at {TIME}) CSN 18446744073709551615": wf.Commit(xid=5, commit_time=TIME, csn=(1 << 64) - 1),
    "COMMIT CSN 7": wf.Commit(csn=7),
    f"ABORT 5 (at {TIME})": wf.Abort(xid=5, commit_time=TIME),
    "ABORT": wf.Abort(),
    "PREPARE 5 (at (timestamp out of range))": wf.Prepare(xid=5, commit_time="(timestamp out of range)"),
}
LINES: dict[str, dict[str, wf.Event]] = {
    "gaussdb-json": PARALLEL,
    "gaussdb-text": PARALLEL,
    "mppdb-json": {
        **_SERIAL,
        "BEGIN": wf.Begin(),
        "BEGIN 78108": wf.Begin(xid=78108),
        "BEGIN 78108 ORIGIN_ID 65534": wf.Begin(xid=78108, origin=65534),
        "BEGIN ORIGIN_ID 1": wf.Begin(origin=1),
    },
    "opengauss-test-decoding": {**_SERIAL, "BEGIN": wf.Begin(), "BEGIN 16020": wf.Begin(xid=16020)},
    "sql-decoding": {
        "BEGIN 2357": wf.Begin(csn=2357),
        "BEGIN": wf.Begin(),
        f"COMMIT (at {TIME}) 3020234": wf.Commit(commit_time=TIME, csn=3020234),
        "COMMIT 7": wf.Commit(csn=7),
        "ABORT 5": wf.Abort(xid=5),
    },
}
GID = "a, txid 9 (at b)'c\\d"
QUOTED = "E'a, txid 9 (at b)''c\\\\d'"
POSTGRES: dict[str, wf.Event] = {
    "BEGIN": wf.Begin(),
    "BEGIN 4294967295": wf.Begin(xid=(1 << 32) - 1),
    "COMMIT": wf.Commit(),
    f"COMMIT (at {TIME})": wf.Commit(commit_time=TIME),
    f"COMMIT 5 (at {TIME})": wf.Commit(xid=5, commit_time=TIME),
    "COMMIT PREPARED 'it''s'": wf.CommitPrepared(gid="it's"),
    f"COMMIT PREPARED {QUOTED}, txid 5 (at {TIME})": wf.CommitPrepared(gid=GID, xid=5, commit_time=TIME),
    "ROLLBACK PREPARED '', txid 5": wf.RollbackPrepared(gid="", xid=5),
    f"ROLLBACK PREPARED 'g' (at {TIME})": wf.RollbackPrepared(gid="g", commit_time=TIME),
    f"PREPARE TRANSACTION {QUOTED}, txid 5 (at {TIME})": wf.Prepare(gid=GID, xid=5, prepare_time=TIME),
    "PREPARE TRANSACTION 'g'": wf.Prepare(gid="g"),
    "opening a streamed block for transaction": wf.StreamStart(),
    "opening a streamed block for transaction TXN 5": wf.StreamStart(xid=5),
    "closing a streamed block for transaction": wf.StreamStop(),
    "closing a streamed block for transaction TXN 5": wf.StreamStop(xid=5),
    "streaming change for transaction": wf.StreamChange(),
    "streaming change for TXN 5": wf.StreamChange(xid=5),
    "streaming truncate for transaction": wf.Truncate(tables=()),
    "streaming truncate for TXN 5": wf.Truncate(tables=(), xid=5),
    "aborting streamed (sub)transaction": wf.StreamAbort(),
    "aborting streamed (sub)transaction TXN 5": wf.StreamAbort(xid=5),
    "committing streamed transaction": wf.StreamCommit(),
    f"committing streamed transaction TXN 5 (at {TIME})": wf.StreamCommit(xid=5, commit_time=TIME),
    f"preparing streamed transaction {QUOTED} (at {TIME})": wf.StreamPrepare(gid=GID, prepare_time=TIME),
    f"preparing streamed transaction TXN {QUOTED}, txid 5": wf.StreamPrepare(gid=GID, xid=5),
    "message: transactional: 0 prefix: , sz: 0 content:": wf.Message(transactional=False, prefix="", content=""),
    "message: transactional: 1 prefix: a, sz: 9 content:, sz: 4 content:\u8868\n": wf.Message(
        transactional=True, prefix="a, sz: 9 content:", content="\u8868\n"
    ),
    "streaming message: transactional: 1 prefix: a, sz: 5, sz: 12": wf.Message(
        transactional=True, prefix="a, sz: 5", size=12
    ),
}
LINES["test-decoding"] = POSTGRES
CASES = [(format, line) for format, lines in LINES.items() for line in lines]

OTHER_SPELLINGS = {
    "BEGIN CSN: 1 commit_lsn: 0/CFE5C80": wf.Begin(csn=1, first_lsn=LSN),
    "COMMIT XID: 78110": wf.Commit(xid=78110),
    "Commit Xid: 78110 (AT infinity)": wf.Commit(xid=78110, commit_time="infinity"),
    "begin csn: 01 First_LSN: 0/cfe5c80": wf.Begin(csn=1, first_lsn=LSN),
}


@pytest.mark.parametrize(("format", "line"), CASES)
def test_read_and_written(format: str, line: str) -> None:
    event = LINES[format][line]
    assert agree([line.encode()], format=format).events == [event]
    assert list(wf.encode([event], format, options=EVERYTHING[format])) == [line.encode()]


@pytest.mark.parametrize("line", [line for line in POSTGRES if "5" in line.replace("sz: 5", "")])
def test_without_xids_and_times(line: str) -> None:
    """The options leave parts out, and with them words change."""
    (written,) = wf.encode([POSTGRES[line]], "test-decoding", options={"include-xids": False})
    (event,) = read([written], format="test-decoding")
    facts = ("xid", "commit_time", "prepare_time")
    gone = {name: None for name in facts if name in type(event).__dataclass_fields__}
    assert event == replace(POSTGRES[line], **gone)


@pytest.mark.parametrize("line", OTHER_SPELLINGS)
def test_other_spellings(line: str) -> None:
    for format in ("gaussdb-json", "gaussdb-text"):
        assert read([line.encode()], format=format) == [OTHER_SPELLINGS[line]]


@pytest.mark.parametrize("line", ["BEGI", "BEGINNING", "COMMITTED", "ABORTED 5", "CO MMIT", "B"])
def test_other_words_are_unknown(line: str) -> None:
    assert read([line.encode()], format="mppdb-json") == [wf.Unknown(raw=line.encode(), text=line)]


@pytest.mark.parametrize(
    ("format", "event"),
    [
        ("gaussdb-json", wf.Commit(xid=5, commit_time="a) (at b")),
        ("mppdb-json", wf.Commit(commit_time="x) CSN 5", csn=None)),
    ],
)
def test_texts_that_hold_marks_come_back(format: str, event: wf.Event) -> None:
    assert read(list(wf.encode([event], format, options=EVERYTHING[format])), format=format) == [event]


def test_texts_that_would_be_read_as_something_else_are_refused() -> None:
    event = wf.Begin(csn=1, first_lsn=1, commit_time="x origin_id: 5")
    with pytest.raises(wf.EncodeError, match="gaussdb-text BEGIN: it would be read as something else"):
        list(wf.encode([event], "gaussdb-text", options=EVERYTHING["gaussdb-text"]))
