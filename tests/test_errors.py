"""The errors: their text says all that their attributes say, they pickle, and one base catches them all."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import pytest

import wireformat as wf

ROOT = Path(__file__).parent.parent
KINDS = [
    wf.DecodeError,
    wf.ShortData,
    wf.BadTag,
    wf.BadLength,
    wf.BadText,
    wf.BadValue,
    wf.TrailingBytes,
    wf.BadTemplate,
]
FACTS = {
    "format": "some-format",
    "message": 7,
    "record": 3,
    "message_offset": 1234,
    "field_offset": 5,
    "stream_offset": 99999,
    "path": "new.cells[3].length",
    "record_lsn": 0x16B374D848,
    "table": "public.orders",
    "spot": b"\x00\xff",
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_says_everything(kind: type[wf.DecodeError]) -> None:
    text = str(kind("a length", "none", **FACTS))
    assert text.startswith(f"{kind.words}: expected a length, got none [some-format: ")
    for part in ("message 7", "record 3", "byte 1234", "byte in the field 5", "stream byte 99999"):
        assert part in text
    for part in ("field new.cells[3].length", "lsn 16/B374D848", "table public.orders", "bytes there 00 ff"):
        assert part in text


def test_a_hint_ends_the_text() -> None:
    error = wf.BadRows("rows", "none", table="s.t", hint="do this")
    assert str(error) == "bad rows: expected rows, got none [table s.t]; do this"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert "start earlier in the stream" in str(wf.UnknownRelation("a relation", "oid 5"))


def test_every_error_is_a_public_name() -> None:
    errors = {name for name, kind in vars(wf.errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert errors <= {*wf.__all__}


def test_what_is_not_known_is_not_said() -> None:
    assert str(wf.BadTag("a", "b")) == "bad tag: expected a, got b"
    assert str(wf.BadTag("a", "b", format="f")) == "bad tag: expected a, got b [f]"
    assert str(wf.BadTag("a", "b", message=0)) == "bad tag: expected a, got b [unknown format: message 0]"
    assert str(wf.BadRows("a", "b")) == "bad rows: expected a, got b"
    assert str(wf.BadRows("a", "b", hint="c")) == "bad rows: expected a, got b; c"
    assert str(wf.OrderError("a", "b", state="s", open="")) == "bad order: s: expected a, got b [row changes]"
    assert str(wf.BadTag("a", "b", format="f", message=0)) == "bad tag: expected a, got b [f: message 0]"


@pytest.mark.parametrize("kind", KINDS)
def test_pickle_and_copy(kind: type[wf.DecodeError]) -> None:
    error = kind("a length", "none", **FACTS)
    for other in (copy.copy(error), *(pickle.loads(pickle.dumps(error, protocol)) for protocol in range(2, 6))):
        assert type(other) is kind
        assert str(other) == str(error)
        assert other.__dict__ == error.__dict__


def test_facts_are_added_as_they_are_learnt() -> None:
    error = wf.ShortData("a", "b")
    assert error.add(message=3, table="s.t") is error
    assert (error.message, error.table, error.record) == (3, "s.t", None)
    with pytest.raises(TypeError, match="massage"):
        error.add(massage=3)


def test_one_base_catches_them_all() -> None:
    for kind in (*KINDS, wf.OptionError, wf.EncodeError, wf.LimitExceeded):
        assert issubclass(kind, wf.WireformatError)
        assert issubclass(kind, ValueError)


def test_an_error_comes_back_from_another_process() -> None:
    with get_context("spawn").Pool(1) as pool, pytest.raises(wf.ShortData, match="message 0, byte 0") as raised:
        pool.apply(_decode_nothing)
    assert raised.value.path == "length"


def _decode_nothing() -> None:
    list(wf.decode([b""], "gaussdb-binary", engine="declaration"))


def test_one_thing_is_not_many() -> None:
    counted = wf.errors.counted
    assert [counted(count, "row") for count in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert (counted(1, "more byte"), counted(1234, "row", ",")) == ("1 more byte", "1,234 rows")


NUMBER_AND_NOUN = re.compile(r"^ (?:more |UNKNOWN )?(?:bytes|messages|records|rows|cells|values|types|items|changes)\b")
NEVER_ONE = {
    *("ENVELOPE_BYTES", "BARE_HEARTBEAT_BYTES + 1", "RECORD_BYTES", "NAME_BYTES", "RESULT_BYTES", "_NUMERIC_HEAD.size"),
    *(
        "_HEAD.size",
        "layout.size",
        "least",
        "longest",
        "TRANSACTION_BYTES",
        "len(data)",
        "len(message)",
        "len(body) + 8",
        "len(raws)",
        "size",
    ),
}
"""Numbers in texts that are constants, or larger than a limit."""


def test_numbers_of_things_are_counted() -> None:
    """A number before a noun in the plural is a call of `counted`, or is never 1."""
    found = []
    for package in ("wireformat", "spark_udfs"):
        for path in (ROOT / package).rglob("*.py"):
            for text in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(text, ast.JoinedStr):
                    for value, after in pairwise(text.values):
                        is_plural = isinstance(after, ast.Constant) and NUMBER_AND_NOUN.match(str(after.value))
                        if is_plural and isinstance(value, ast.FormattedValue):
                            found += [f"{path.name}: {ast.unparse(value.value)}"]
    assert [one for one in found if one.partition(": ")[2] not in NEVER_ONE] == []
