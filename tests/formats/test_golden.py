"""The reference captures: every record equals the truth in both engines, and its events are the messages again."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import wireformat as wf
from wireformat.formats.registry import find_format
from wireformat.formats.text_format import TextFormat

from .. import golden_cases
from ..accounting import EVERYTHING, account_all
from ..codec_checks import check_byte_by_byte, check_pieces, check_same_bytes
from ..engines import ENGINES, agree, ask, read, rows, same
from ..golden_cases import BINARY, CASES, Case, answer_of, event_of, find_case, has_bad_text, rows_of
from ..support.gaussdb_binary import SUPPORT, sample

GOOD = [case for case in CASES if not case.has_bad_text]
PARALLEL = ("gaussdb-binary", "gaussdb-json", "gaussdb-text")
STREAMS = [case for case in GOOD if case.format in PARALLEL and (case.format == PARALLEL[0] or case.is_batched)]
"""The cases whose messages say where they end."""
BAD_TEXT = [case for case in CASES if case.has_bad_text]
HANDMADE_BATCHES = ["handmade_begin_username_batch", "handmade_heartbeat_mixed"]

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_good_case = pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
each_bad_text_case = pytest.mark.parametrize("case", BAD_TEXT, ids=lambda case: case.name)
each_engine = pytest.mark.parametrize("engine", ENGINES)


def test_no_case_is_left_out() -> None:
    assert {case.name for case in CASES} == golden_cases.names_of_files()
    assert len(CASES) == 92
    assert sum(case.record_count for case in CASES) == 19477
    assert len(BAD_TEXT) == 3


@each_case
def test_the_files_hold_what_the_table_says(case: Case) -> None:
    assert len(case.messages) == case.message_count
    assert len(case.truth) == case.record_count
    assert sum(map(len, case.messages)) == case.payload_bytes


def without_forms(event: wf.Event) -> wf.Event:
    """Without how sql_decoding wrote each value, which no truth says."""
    if not isinstance(event, wf.RowChange):
        return event
    images = [
        image and replace(image, types=tuple(re.sub(r"\A\?.*", "?", type) for type in image.types))
        for image in (event.new, event.old)
    ]
    return replace(event, new=images[0], old=images[1])


@each_engine
@each_good_case
def test_events_equal_the_truth(case: Case, engine: str) -> None:
    answer = answer_of(case, engine)
    assert answer.error is None
    assert list(map(without_forms, answer.events)) == [event_of(record) for record in case.truth]


@each_engine
@each_good_case
def test_rows_equal_the_truth(case: Case, engine: str) -> None:
    table = answer_of(case, engine).table
    assert table is not None
    assert table.schema.equals(wf.arrow.CHANGES.with_metadata({"wireformat.format": case.format}), check_metadata=True)
    assert rows(table) == rows_of(case.truth)


@each_case
def test_engines_agree_in_permissive_mode_and_keep_all_bytes(case: Case) -> None:
    scan, declaration = (answer_of(case, engine) for engine in ENGINES)
    same(case.messages, scan, declaration)
    if case.reading != {"encoding": "utf-8"}:
        scan = agree(case.messages, format=case.format, mode="PERMISSIVE")  # as a reader that is told nothing of it
    account_all(case.messages, scan.by_message(), case.format)


@each_engine
@each_good_case
def test_failfast_reads_the_same(case: Case, engine: str) -> None:
    """As one stream of Arrow batches, which no other test here reads in the mode that is the default."""
    table = wf.arrow.changes(case.array, case.format, engine=engine, **case.reading)
    assert table.equals(answer_of(case, engine).table, check_metadata=True)


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.name)
def test_a_stream_cut_anywhere_gives_the_same_events(case: Case) -> None:
    data = b"".join(case.messages)
    events = [event_of(record) for record in case.truth]
    for size in (1009, len(data)):
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        check_pieces(pieces, events, format=case.format, **case.reading)


@pytest.mark.parametrize("name", ["b_opt_x1t0o0e1_batch", "b_opt_x1t1o1e0_single", "b_gbk_single", *HANDMADE_BATCHES])
def test_a_stream_fed_byte_by_byte_gives_the_same_events(name: str) -> None:
    case = find_case(name)
    check_byte_by_byte(b"".join(case.messages), [event_of(record) for record in case.truth], encoding=case.encoding)


@pytest.mark.parametrize("case", [case for case in CASES if not case.is_handmade], ids=lambda case: case.name)
def test_events_are_written_as_the_server_wrote_them(case: Case) -> None:
    """Byte for byte, closed by size where the server did. The sender's timeout is a flush: a writer has no clock.

    latin-1 takes any bytes, so the values that are no UTF-8 are written back too.
    """
    options = EVERYTHING[case.format] | ({"sending-batch": int(case.is_batched)} if case.format in PARALLEL else {})
    encoding = "latin-1" if case.has_bad_text else case.encoding
    answer = (
        ask(case.messages, "scan", format=case.format, **case.reading | {"encoding": encoding})
        if case.has_bad_text
        else answer_of(case, "scan")
    )
    events = answer.by_message()
    writer = find_format(case.format).writer(options, encoding=encoding, batch_bytes=case.threshold)
    for index, message in enumerate(case.messages):
        written: list[bytes] = []
        for event in events.get(index, ()):
            written += writer.write(event)
        if not written or not is_closed_by_size(case, message):
            written += writer.flush()
        assert written == [as_the_writer_would(case, message)], f"message {index}"


def is_closed_by_size(case: Case, message: bytes) -> bool:
    """Texts are closed alike by size and by timeout: their writer has closed a message already, or is flushed."""
    return case.format != "gaussdb-binary" or not message.endswith(b"P\0\0\0\0")


def as_the_writer_would(case: Case, message: bytes) -> bytes:
    """The message without what its events do not say."""
    for name, (pattern, said) in NOT_SAID.items():
        if case.name.startswith(name):
            message = pattern.sub(said, message)
    return message


NOT_SAID = {
    # that columns at the end of the table were dropped: an event holds the columns that are there
    "sql_": (re.compile(rb", \);\Z"), b");"),
    # which word release 3.0 has for first_lsn
    "j_old_v30": (re.compile(rb"\ABEGIN (CSN: [0-9]+) commit_lsn:"), rb"BEGIN \1 first_lsn:"),
    "t_old_v30": (re.compile(rb"\ABEGIN (CSN: [0-9]+) commit_lsn:"), rb"BEGIN \1 first_lsn:"),
}
"""What is lost when events are written again, by the beginning of the case's name."""


@pytest.mark.parametrize("name", ["handmade_json_document", "handmade_text_document"])
def test_the_lines_of_the_document_are_written_as_opengauss_does(name: str) -> None:
    """Which prints the word COMMIT and its mark in lower case."""
    case = find_case(name)
    written = list(wf.encode(read(case.messages, format=case.format), case.format))
    assert written == [message.replace(b"COMMIT XID:", b"commit xid:") for message in case.messages]


@pytest.mark.parametrize("case", [case for case in BINARY if case.is_handmade], ids=lambda case: case.name)
def test_handmade_messages_are_written_again_byte_for_byte(case: Case) -> None:
    """Message by message: where these batches end follows no threshold, so no batch size is asked to give them."""
    for message in case.messages:
        check_same_bytes(SUPPORT, sample(message), read([message]))


@pytest.mark.parametrize(
    "case",
    [case for case in BINARY if case.is_handmade and not case.name.endswith(("_batch", "_mixed"))],
    ids=lambda case: case.name,
)
def test_unbatched_handmade_messages_are_what_encode_gives(case: Case) -> None:
    assert list(wf.encode(read(case.messages), case.format, options=EVERYTHING[case.format])) == case.messages


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.client_text and case.format != PARALLEL[0]], ids=lambda case: case.name
)
def test_texts_are_what_the_client_prints(case: Case) -> None:
    format = find_format(case.format)
    assert isinstance(format, TextFormat)
    texts = [text for message in case.messages for text in format.texts(message)]
    assert b"".join(text + b"\n" for text in texts) == case.client_text


@each_engine
@each_bad_text_case
def test_failfast_names_the_first_bad_record(case: Case, engine: str) -> None:
    first = next(place for place, record in enumerate(case.truth) if has_bad_text(record))
    record = case.truth[first]
    answer = ask(case.messages, engine, format=case.format)
    assert answer.events == [event_of(good) for good in case.truth[:first]]
    side = "new" if any("value_hex" in column for column in record["new"] or ()) else "old"
    column = next(place for place, column in enumerate(record[side]) if "value_hex" in column)
    error = answer.error
    assert isinstance(error, wf.BadText)
    assert error.path == f"{side}.cells[{column}].value"
    assert (error.message, error.record, error.record_lsn) == (record["msg"], 0, record.get("lsn"))
    assert error.table == f"{record['schema']}.{record['table']}"
    data = bytes.fromhex(record[side][column]["value_hex"])
    assert data in case.messages[record["msg"]][error.message_offset :]
    for part in (f"message {record['msg']}", f"field {error.path}", f"byte {error.message_offset}"):
        assert part in str(error)


@each_engine
@each_bad_text_case
def test_permissive_marks_the_records_with_bad_text_and_no_others(case: Case, engine: str) -> None:
    events = read(case.messages, engine, format=case.format, mode="PERMISSIVE")
    table = rows(wf.arrow.changes(case.messages, case.format, engine=engine, mode="PERMISSIVE"))
    expected = rows_of(case.truth, errors="replace")
    for record, event, row, good_row in zip(case.truth, events, table, expected, strict=True):
        if not has_bad_text(record):
            assert event == event_of(record)
            assert row == good_row
            continue
        message = case.messages[record["msg"]]
        body = message[12:-1] if case.format == "gaussdb-binary" else message
        assert isinstance(event, wf.Corrupt)
        assert (event.lsn, event.raw) == (record.get("lsn"), body)
        filled = {name: value for name, value in row.items() if value is not None}
        names = {"message": record["msg"], "record": 0, "kind": "CORRUPT", "lsn": record.get("lsn")}
        names = {name: value for name, value in names.items() if value is not None}
        assert filled == {**names, "error": event.error, "raw": body}
        assert event.error.startswith("bad text: expected text in utf-8, got ")
        assert f"message {record['msg']}" in event.error


@each_engine
@each_bad_text_case
def test_replace_gives_replacement_characters(case: Case, engine: str) -> None:
    events = read(case.messages, engine, format=case.format, encoding_errors="replace")
    assert events == [event_of(record, errors="replace") for record in case.truth]
    table = wf.arrow.changes(case.messages, case.format, engine=engine, encoding_errors="replace")
    assert rows(table) == rows_of(case.truth, errors="replace")
    assert any(
        "�" in (value or "")
        for event in events
        if isinstance(event, wf.RowChange) and event.new
        for value in event.new.values
    )


@each_engine
@each_bad_text_case
def test_dropmalformed_leaves_them_out_and_counts(case: Case, engine: str) -> None:
    bad = sum(map(has_bad_text, case.truth))
    assert bad > 0
    assert read(case.messages, engine, format=case.format, mode="DROPMALFORMED") == [
        event_of(r) for r in case.truth if not has_bad_text(r)
    ]
    table = wf.arrow.changes(case.messages, case.format, engine=engine, mode="DROPMALFORMED")
    assert table.num_rows == len(case.truth) - bad
    assert table.schema.metadata[b"wireformat.dropped"] == str(bad).encode()
    if case.format != "gaussdb-binary":  # unbatched texts do not say where they end
        return
    decoder = wf.Decoder(case.format, engine=engine, mode="DROPMALFORMED")
    decoder.feed(b"".join(case.messages))
    assert (len(decoder.events()), decoder.dropped) == (len(case.truth) - bad, bad)
