"""The errors: their text says all that their attributes say, they pickle, and one base catches them all."""

from __future__ import annotations

import copy
import pickle
from multiprocessing import get_context

import pytest

import wireformat as wf

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
    assert str(wf.BadTag("a", "b")) == "bad tag: expected a, got b [unknown format: ]"
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
