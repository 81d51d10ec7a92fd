"""`wireformat convert`: the events of the output are those of the input, or what is lost is counted and told."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import wireformat as wf
from wireformat.cli import convert
from wireformat.errors import counted
from wireformat.formats.registry import find_format

from .. import handmade, strategies
from ..golden_cases import CASES, Case, find_case
from .commands import run

BINARY = "gaussdb-binary"
FACTS: dict[str, Any] = {"xid": 7, "commit_time": "2026-11-21 01:02:03+08", "origin": -1, "username": "ana"}
BEGIN = wf.Begin(lsn=1, csn=2, first_lsn=1, **FACTS)
COMMIT = wf.Commit(lsn=3, **FACTS)
CORRUPT = handmade.message(handmade.BEGIN[:12])


def write(path: Path, events: Sequence[wf.Event], **options: Any) -> Path:
    everything = {f"include-{name}": True for name in ("timestamp", "originid", "user")}
    path.write_bytes(b"".join(wf.encode(events, BINARY, options=everything | options)))
    return path


def events_of(path: Path, format: str = BINARY, **options: Any) -> list[wf.Event]:
    table = pq.read_table(path)
    assert table.schema.equals(pa.schema([("seq", pa.int64()), ("payload", pa.binary())]))
    assert table["seq"].to_pylist() == list(range(len(table)))
    return list(wf.decode(table["payload"], format, **options))


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.has_bad_text and case.record_count < 400], ids=lambda case: case.name
)
def test_a_format_can_say_what_it_said(case: Case, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    given = ("--option", "sending-batch=1") if case.is_batched else ()
    result = run(
        *("convert", case.path, "-f", case.format, "-t", case.format, "-o", out, "--encoding", case.encoding), *given
    )
    assert (result.exit_code, result.stdout) == (0, "")
    count = len(pq.read_table(out))
    assert result.stderr == f"{out}: {counted(count, 'message')} from {counted(case.message_count, 'message')}\n"
    assert count == 1 if case.is_batched else case.record_count
    options = {"format": case.format, "encoding": case.encoding}
    assert events_of(out, **options) == list(wf.decode(case.array, **options))


ROUND_TRIPS = [
    "b_gbk_single",
    "b_large2_batch",
    "b_num63_batch",
    "b_opt_x1t1o1e0_single",
    "b_wide_batch",
    "handmade_heartbeat_mixed",
]
"""Captures with nothing in them that the other parallel styles cannot say, but for heartbeats."""


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_binary_to_json_to_text_to_binary_changes_nothing(name: str, tmp_path: Path) -> None:
    case = find_case(name)
    formats = [BINARY, "gaussdb-json", "gaussdb-text", BINARY]
    kinds = "BEGIN,INSERT,UPDATE,DELETE,COMMIT"
    path = case.path
    for place, (format, to) in enumerate(pairwise(formats)):
        out = tmp_path / f"{place}.parquet"
        result = run(
            *("convert", path, "-f", format, "-t", to, "-o", out, "--kinds", kinds, "--encoding", case.encoding),
            *("--option", "sending-batch=1"),
        )
        assert (result.exit_code, result.stderr.count("\n")) == (0, 1), result.stderr
        path = out
    expected = list(wf.decode(case.array, BINARY, kinds=kinds.split(","), encoding=case.encoding))
    assert len(expected) > 30
    assert events_of(path, encoding=case.encoding) == expected


LOST = {
    ("b_types_batch", "mppdb-json"): {
        "BEGIN: lsn",
        "BEGIN: csn",
        "BEGIN: first_lsn",
        "BEGIN: commit_time",
        "INSERT: lsn",
        "INSERT: new",
        "INSERT: new.types",
        "INSERT: new.cells[].type: expected the SQL name of a type, got 'oid:16500'",
        "INSERT: new.cells[].type: expected the SQL name of a type, got 'oid:16501'",
    },
    ("t_toast_single", "gaussdb-json"): {
        "INSERT: new",
        "UPDATE: new",
        "UPDATE: old",
        "DELETE: old",
        "UPDATE: new.cells[].value: JSON has no word for a value that was not sent",
    },
    ("mppdb_ddl_truncate", "opengauss-test-decoding"): {"DDL: lsn"},
    ("mppdb_ddl_truncate", "gaussdb-binary"): {
        "DDL: the format cannot say it",
        "TRUNCATE: the format cannot say it",
    },
    ("sql_stream", "mppdb-json"): {
        "INSERT: new.cells[].type: expected the SQL name of a type, got '?string'",
    },
    ("handmade_heartbeat_mixed", "gaussdb-text"): {"HEARTBEAT: the format cannot say it"},
}
"""Some of what is told for these captures and targets."""


@pytest.mark.parametrize(("name", "to"), LOST, ids=" to ".join)
def test_what_a_format_cannot_say_is_told_and_the_rest_is_written(name: str, to: str, tmp_path: Path) -> None:
    case, out = find_case(name), tmp_path / "out.parquet"
    result = run("convert", case.path, "-f", case.format, "-t", to, "-o", out, "--skip")
    assert result.exit_code == 0
    told = {line[11:]: int(line[:9].replace(",", "")) for line in result.stderr.splitlines()[1:-1]}
    assert set(told) >= LOST[name, to]
    refused = sum(count for reason, count in told.items() if len(reason.split()) > 2)
    assert len(events_of(out, format=to)) == case.record_count - refused


@pytest.mark.parametrize("held", [1, 2, 1000])
def test_options_are_those_of_the_encoder(held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "EVENTS_AT_ONCE", held)
    case = find_case("b_opt_x1t1o1e0_single")
    out = tmp_path / "out.parquet"
    given = {"sending-batch": 1, "include-user": "off", "skip-empty-xacts": "on"}
    written = [part for name, value in given.items() for part in ("--option", f"{name}={value}")]
    assert run("convert", case.path, "-t", BINARY, "-o", out, *written).exit_code == 0
    options = {"include-timestamp": True, "include-originid": True, **given}
    expected = list(wf.encode(wf.decode(case.array, BINARY), BINARY, options=options))
    assert pq.read_table(out)["payload"].to_pylist() == expected


def test_inputs_and_filters_are_those_of_decode(tmp_path: Path) -> None:
    row, other = (wf.Insert(lsn=2, table_schema="s", table_name=name, new=wf.TupleData()) for name in "tu")
    stream = write(tmp_path / "in.bin", [BEGIN, row, other, COMMIT])
    out = tmp_path / "out.parquet"
    result = run(
        *("convert", stream, "-", "-t", BINARY, "-o", out, "--tables", "s.t", "--kinds", "INSERT,COMMIT"),
        stdin=stream.read_bytes(),
    )
    assert result.stderr == f"{out}: 4 messages from 8 messages\n"
    assert events_of(out) == [row, COMMIT] * 2


def test_what_begin_and_commit_carry_is_written_without_being_asked_for(tmp_path: Path) -> None:
    stream, out = write(tmp_path / "in.bin", [BEGIN, COMMIT]), tmp_path / "out.parquet"
    assert run("convert", stream, "-t", BINARY, "-o", out).exit_code == 0
    assert events_of(out) == [BEGIN, COMMIT]


class TestWhatIsLost:
    """It is told with its count, and without --skip there is no file."""

    def run_both(self, tmp_path: Path, stream: Path, *arguments: str) -> tuple[list[str], list[wf.Event]]:
        """The lines that tell what is lost, and the events that are left with --skip."""
        out = tmp_path / "out.parquet"
        command = ("convert", stream, "-t", BINARY, "-o", out, *arguments)
        result = run(*command)
        assert (result.exit_code, result.stdout) == (1, "")
        head, *told, last = result.stderr.splitlines()
        assert head == f"{BINARY} cannot express the following, by number of records:"
        assert last == f"wireformat: {out}: not written; --skip writes the rest"
        assert [path.name for path in tmp_path.iterdir()] == [stream.name]
        skipped = run(*command, "--skip")
        assert (skipped.exit_code, skipped.stdout) == (0, "")
        assert skipped.stderr.splitlines()[:-1] == [head, *told]
        return told, events_of(out)

    def test_fields(self, tmp_path: Path) -> None:
        stream = write(tmp_path / "in.bin", [BEGIN, COMMIT, COMMIT])
        arguments = ("--option", "include-user=off", "--option", "include-xids=0")
        told, events = self.run_both(tmp_path, stream, *arguments)
        assert told == [
            "        1  BEGIN: xid",
            "        1  BEGIN: username",
            "        2  COMMIT: xid",
            "        2  COMMIT: username",
        ]
        assert [(event.xid, event.username, event.origin) for event in events] == [(None, None, -1)] * 3  # type: ignore[attr-defined]

    def test_records(self, tmp_path: Path) -> None:
        stream = tmp_path / "in.bin"
        stream.write_bytes(CORRUPT + handmade.SAMPLES["insert"] + CORRUPT)
        told, events = self.run_both(tmp_path, stream, "--mode", "PERMISSIVE")
        assert told == ["        2  CORRUPT: the format cannot say it"]
        assert events == list(wf.decode([handmade.SAMPLES["insert"]], BINARY))

    def test_reasons_are_not_told_without_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(convert, "MOST_REASONS", 1)
        stream = write(tmp_path / "in.bin", [BEGIN, COMMIT, COMMIT])
        told, _ = self.run_both(tmp_path, stream, "--option", "include-user=off")
        assert told == [
            "        1  BEGIN: username",
            "        2  other reasons",
        ]


@pytest.mark.parametrize("format", wf.FORMATS)
@given(event=strategies.events())
def test_what_is_not_told_reads_back_as_it_was(format: str, event: wf.Event) -> None:
    """Hostile names, values and types; a record that is not written is told."""
    checked = convert.Conversion(find_format(format), {}, "utf-8")
    read = wf.decode(list(checked.messages([event])), format)
    found = [item for item in read if not isinstance(item, wf.Relation)]  # which a row of pgoutput brings with it
    assert [item.kind for item in found] in ([event.kind], [])
    if not checked.lost:
        assert found == [event]


class Lying:
    """A binary format whose writer writes a COMMIT twice, a BEGIN without a body, and no old row."""

    def __init__(self) -> None:
        self._format = find_format(BINARY)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._format, name)

    def writer(self, options: Any, **settings: Any) -> Any:
        writer = self._format.writer(options, **settings)
        write = writer.write

        def lie(event: wf.Event) -> list[bytes]:
            if isinstance(event, wf.Begin):
                return [CORRUPT]
            if isinstance(event, wf.Delete):
                return []
            if isinstance(event, wf.Update):
                event = wf.Update(lsn=event.lsn, table_schema="s", table_name="t", new=event.new)
            return write(event) * (2 if isinstance(event, wf.Commit) else 1)

        writer.write = lie
        return writer


def test_every_record_is_read_back() -> None:
    image, other = wf.TupleData(("a",), ("1",), ("integer",)), wf.TupleData(("a",), ("2",), ("integer",))
    change = {"lsn": 1, "table_schema": "s", "table_name": "t"}
    checked = convert.Conversion(Lying(), {}, "utf-8")  # type: ignore[arg-type]
    events = [BEGIN, COMMIT, wf.Delete(**change), wf.Update(**change, new=image, old=other), wf.Insert(**change)]
    assert len(list(checked.messages(events))) == 2
    assert checked.lost == {
        "BEGIN: it reads back as CORRUPT": 1,
        "COMMIT: it reads back as COMMIT and COMMIT": 1,
        "DELETE: it reads back as nothing": 1,
        "UPDATE: old": 1,
    }


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-t", "gaussdb-bin"], "unknown format 'gaussdb-bin', did you mean 'gaussdb-binary'?"),
        (["-t", BINARY, "-f", "binary"], "unknown format 'binary'"),
        (["-t", BINARY, "--option", "sending-bach=1"], "unknown option 'sending-bach', did you mean 'sending-batch'?"),
        (["-t", BINARY, "--option", "sending-batch=2"], "option sending-batch: expected 0 or 1, got '2'"),
        (["-t", BINARY, "--option", "sending-batch"], "expected name=value, got 'sending-batch'"),
        ([], "Missing option '--to'"),
    ],
)
def test_bad_usage(arguments: list[str], text: str, tmp_path: Path) -> None:
    stream = write(tmp_path / "in.bin", [COMMIT])
    result = run("convert", stream, "-o", tmp_path / "out.parquet", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert text in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.bin"]


def test_an_input_is_not_overwritten(tmp_path: Path) -> None:
    stream = write(tmp_path / "in.arrow", [COMMIT])
    result = run("convert", stream, "-t", BINARY, "-o", stream)
    assert (result.exit_code, result.stderr) == (2, f"wireformat: {stream}: is an input, and would be overwritten\n")


def test_bad_data_leaves_no_file(tmp_path: Path) -> None:
    stream = tmp_path / "in.bin"
    stream.write_bytes(handmade.SAMPLES["insert"] + CORRUPT)
    result = run("convert", stream, "-t", BINARY, "-o", tmp_path / "out.parquet")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"wireformat: {stream}: short data: ")
    assert [path.name for path in tmp_path.iterdir()] == ["in.bin"]


def test_what_is_left_out_as_malformed_is_told(tmp_path: Path) -> None:
    stream, out = tmp_path / "in.bin", tmp_path / "out.parquet"
    stream.write_bytes(CORRUPT + handmade.SAMPLES["insert"])
    result = run("convert", stream, "-t", BINARY, "-o", out, "--mode", "DROPMALFORMED")
    assert (result.exit_code, result.stderr) == (0, f"{out}: 1 message from 2 messages, 1 record skipped\n")


LOCKS_ONLY = [b"BEGIN 5", b"table s.t: INSERT: a[integer]:1", b"COMMIT 5", b"COMMIT PREPARED 'g', txid 6"]
"""PostgreSQL 16 sends nothing of a prepared transaction that only locked rows, but for its end."""


NO_PREPARE = (
    "1 COMMIT PREPARED without a PREPARE in the input, gid 'g': these transactions changed nothing, or the input "
    "begins after their PREPARE and lacks their changes\n"
)


@pytest.mark.parametrize(
    ("end", "told"), [(b"COMMIT PREPARED 'g', txid 6", NO_PREPARE), (b"ROLLBACK PREPARED 'g', txid 6", "")]
)
def test_the_end_of_a_transaction_that_was_not_prepared(end: bytes, told: str, tmp_path: Path) -> None:
    source, out = tmp_path / "locks.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"payload": [*LOCKS_ONLY[:-1], end]}), source)
    for to, count, note in (
        ("test-decoding", 4, ""),
        ("mppdb-json", 3, told),
    ):
        result = run("convert", source, "-f", "test-decoding", "-t", to, "-o", out)
        assert result.stderr == f"{out}: {counted(count, 'message')} from 4 messages\n{note}"
        assert result.exit_code == 0
        kinds = [event.kind for event in events_of(out, to)]
        assert kinds == [event.kind for event in wf.decode([*LOCKS_ONLY[:-1], end], "test-decoding")][:count]


def test_the_end_of_a_transaction_that_was_prepared_is_told(tmp_path: Path) -> None:
    source = tmp_path / "prepared.parquet"
    pq.write_table(pa.table({"payload": [b"BEGIN 6", b"PREPARE TRANSACTION 'g', txid 6", LOCKS_ONLY[-1]]}), source)
    result = run("convert", source, "-f", "test-decoding", "-t", "mppdb-json", "-o", tmp_path / "out.parquet")
    assert result.exit_code == 1
    assert "COMMIT_PREPARED" in result.stderr
    assert "without a PREPARE" not in result.stderr
