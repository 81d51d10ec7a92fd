"""Trees of messages: every byte is in one leaf, which names its rule, in all formats and whatever the bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.inspection.reading import UNNAMED_RULE, RecordReader
from wireformat.options import ReadOptions

from ..examples import ONE_IN
from ..golden_cases import CASES, Case
from ..mutations import changed_bytes, inserted_and_deleted, overwritten_lengths, truncations
from ..servers.captures import capture_names, read_capture
from ..support import SUPPORTED

OUTSIDE = Path(__file__).parents[1] / "outside"
SHORT = 16
FORMATS = [name for name in SUPPORTED if name in wf.FORMATS]


@pytest.fixture(autouse=True)
def outside_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(OUTSIDE))


def check_cover(found: wf.Inspection) -> None:
    """Every byte is in one leaf, and every leaf has a rule; nodes hold exactly what their children do."""
    at = 0
    for leaf in found.leaves():
        assert leaf.start == at
        assert leaf.stop > at or not found.message[at:]
        assert leaf.rule
        at = leaf.stop
    assert at == len(found.message)
    for record in found.records:
        for node in record.walk():
            assert not node.children or (node.start, node.stop) == (node.children[0].start, node.children[-1].stop)


def check_good(found: wf.Inspection) -> None:
    """The same of good bytes: rules name all of them, and only values and words of the grammar are long."""
    check_cover(found)
    assert found.errors == []
    for leaf in found.leaves():
        assert leaf.rule != UNNAMED_RULE, leaf
        assert leaf.stop - leaf.start <= SHORT or leaf.value is not None or leaf.is_word, leaf
        if leaf.is_word:
            assert repr(found.message[leaf.start : leaf.stop].decode("latin-1")).lower() == leaf.rule.lower()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden_cases(case: Case) -> None:
    messages = case.messages[::ONE_IN] if ONE_IN > 1 else case.messages
    for message in islice(messages, 40 if ONE_IN > 1 else None):
        found = wf.inspect(message, case.format, **case.reading)
        if case.has_bad_text:
            check_cover(found)
            again = wf.inspect(message, case.format, **{**case.reading, "encoding_errors": "replace"})
            check_good(again)
        else:
            check_good(found)


@pytest.mark.parametrize("name", [*capture_names("pgoutput"), *capture_names("test-decoding")])
def test_captures_of_servers(name: str) -> None:
    capture = read_capture(name)
    format = "pgoutput" if capture.facts["plugin"] == "pgoutput" else "test-decoding"
    reader = RecordReader(wf.FORMATS[format], ReadOptions.check())
    for message in capture.messages:
        nodes = [reader.node(message, piece, index) for index, piece in enumerate(reader.slices(message))]
        check_good(wf.Inspection(message, format, nodes))


@pytest.mark.parametrize("format", FORMATS)
def test_the_tree_says_what_the_event_says(format: str) -> None:
    """Values of the leaves are those of the event that `decode` gives."""
    support = SUPPORTED[format]
    for sample in support.samples.values():
        found = wf.inspect(sample.message, format, before=support.before, **sample.reading)
        check_cover(found)
        events = list(wf.decode([*support.before, sample.message], format, engine="declaration", **sample.reading))
        assert [record.value for record in found.records] == events[len(support.before) :]
        if format in ("fixed-width",):
            continue
        for record in found.records:
            check_good(wf.Inspection(sample.message[record.start : record.stop], format, [_moved(record)]))
            said = {repr(node.value) for node in record.walk()}
            for name in ("xid", "csn", "commit_time", "gid", "relation_id", "username", "prefix"):
                value = getattr(record.value, name, None)
                assert value is None or repr(value) in said, (name, record)


def _moved(record: wf.Node) -> wf.Node:
    """The same tree of a message that holds nothing else."""
    begin = record.start
    for node in record.walk():
        node.start, node.stop = node.start - begin, node.stop - begin
    return record


@pytest.mark.parametrize("format", FORMATS)
def test_bad_messages(format: str) -> None:
    """What the error says is in the tree: how far reading came, what was expected, and the bytes there."""
    support = SUPPORTED[format]
    for bad in support.bad.values():
        found = wf.inspect(bad.message, format, before=support.before)
        check_cover(found)
        assert found.errors
        text = str(found)
        for error in found.errors:
            assert error.expected in text
            assert "read to byte" in text
        assert any(node.error is not None for record in found.records for node in record.walk())


@pytest.mark.parametrize("mutations", [truncations, changed_bytes, overwritten_lengths, inserted_and_deleted])
@pytest.mark.parametrize("format", FORMATS)
def test_mutated_bytes_never_fail(format: str, mutations: Callable[[bytes], Iterable[bytes]]) -> None:
    support = SUPPORTED[format]
    messages: Sequence[bytes] = [support.good, *(sample.message for sample in support.samples.values())]
    step = 1 if ONE_IN == 1 else 7
    for message in messages[::step]:
        for mutant in islice(mutations(message), 0, 400 * len(message), 13 if mutations is not truncations else 1):
            check_cover(wf.inspect(mutant, format, before=support.before))


def test_paths_are_those_of_errors() -> None:
    """The path of a leaf is the path that an error about its bytes has."""
    message = SUPPORTED["gaussdb-binary"].good
    found = wf.inspect(message)
    assert found.format == "gaussdb-binary"
    assert found.guess is not None
    length = found.find("new.cells[0].value.length")
    assert (length.value, length.rule) == (1, "length of the text, unsigned integer of 4 bytes")
    bad = bytearray(message)
    bad[length.start] = 0x7F
    (error,) = wf.inspect(bytes(bad), "gaussdb-binary").errors
    assert (error.path, error.message_offset) == ("new.cells[0].value", length.start)
    with pytest.raises(KeyError, match=r"no node of the path 'new.cells\[9\]', did you mean new.cells\["):
        found.find("new.cells[9]")


def test_a_message_without_its_stream() -> None:
    """A record of pgoutput from the middle of a streamed block is recognised, and its table is not known."""
    support = SUPPORTED["pgoutput"]
    insert = support.good
    inside = insert[:1] + (777).to_bytes(4, "big") + insert[1:]
    for message, xid in ((insert, None), (inside, 777)):
        found = wf.inspect(message, "pgoutput")
        check_cover(found)
        assert found.find("relation_id").value == 16385
        assert isinstance(found.errors[0], wf.UnknownRelation)
        assert found.find("relation_id").error is found.errors[0]
        assert xid is None or found.find("xid").value == xid


@pytest.mark.parametrize("in_envelope", [False, True])
def test_earlier_messages_may_be_in_envelopes(in_envelope: bool) -> None:
    """As a replication connection sends them, and files of its messages have them."""
    support = SUPPORTED["pgoutput"]
    before = [b"w" + bytes(24) + message for message in support.before]
    message = b"w" + bytes(24) + support.good if in_envelope else support.good
    found = wf.inspect(message, "pgoutput", before=before)
    assert found.errors == []
    assert found.records[0].value == replace(
        wf.inspect(support.good, "pgoutput", before=support.before).records[0].value, lsn=0 if in_envelope else None
    )


def test_a_batch_without_records_has_no_error() -> None:
    for format in ("gaussdb-text", "gaussdb-json"):
        found = wf.inspect(bytes(4), format)
        check_cover(found)
        assert found.errors == []
        assert list(wf.decode([bytes(4)], format)) == []


def test_cells_have_the_names_of_their_columns() -> None:
    """Where an earlier message of pgoutput described the relation: in each image, also for NULL."""
    support = SUPPORTED["pgoutput"]
    for name in ("update of a key", "delete by key", "update of all"):
        sample = support.samples[name]
        found = wf.inspect(sample.message, "pgoutput", before=support.before, **sample.reading)
        images = [image for image in ("old", "new") if getattr(found.records[0].value, image) is not None]
        assert images
        for image in images:
            assert [found.find(f"{image}.cells[{index}]").value for index in (0, 1)] == ["id", "v"]
        alone = wf.inspect(sample.message, "pgoutput")
        assert alone.find(f"{images[0]}.cells[0]").value is None


def test_wrong_arguments() -> None:
    with pytest.raises(wf.OptionError, match="pass the format"):
        wf.inspect(b"\xff\xff\xff")
    with pytest.raises(wf.OptionError, match="option record"):
        wf.inspect(SUPPORTED["gaussdb-binary"].good, record=4)
    with pytest.raises(TypeError, match="expected bytes, got str"):
        wf.inspect("text")
    assert wf.inspect(SUPPORTED["gaussdb-binary"].good, record=0).records[0].name == "records[0]"


def test_texts_and_pages_hold_no_markup_or_control_characters() -> None:
    """What comes from the wire steers no terminal and no page."""
    evil = "</script><img src=x onerror=alert(1)>\x1b[31m\u202e"
    row = wf.TupleData(names=(evil,), values=(evil,), types=("text",))
    event = wf.Insert(lsn=1, table_schema=evil, table_name=evil, new=row)
    for format in ("gaussdb-binary", "gaussdb-json", "opengauss-test-decoding"):
        (message,) = wf.encode([event], format)
        for data in (message, message[:-3]):
            found = wf.inspect(data, format)
            for text in (str(found), repr(found), found._repr_html_(), *map(repr, found.leaves())):
                assert "\x1b" not in text
                assert "\u202e" not in text
            assert "<img" not in found._repr_html_()
            assert "</script" not in found._repr_html_()


def test_what_is_no_message_and_no_record() -> None:
    commit = bytes.fromhex("00000009 000000000CFE5E68 43 46")
    with pytest.raises(TypeError, match="message: expected bytes, got NoneType"):
        wf.inspect(pa.scalar(None, pa.binary()), "gaussdb-binary")
    with pytest.raises(TypeError, match="before: expected an iterable of messages, got one bytes"):
        wf.inspect(commit, "pgoutput", before=commit)
    tree = wf.inspect(pa.scalar(commit), "gaussdb-binary")
    for record in (1, -1, 10**30):
        with pytest.raises(KeyError, match=r"records\["):
            tree.find("kind", record)
        with pytest.raises(wf.OptionError, match="option record: expected the index"):
            wf.inspect(commit, "gaussdb-binary", record=record)
