"""Texts that are decoded together become what each of them is alone, in every encoding."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, AnyStr

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.engine.scanner import Scanner
from wireformat.arrow.engine.second_look import SecondLook
from wireformat.arrow.scan import transcode
from wireformat.arrow.scan.joined_texts import JOINABLE, LOOKS_AHEAD, decode_joined

from ... import handmade_pgoutput as hand
from ...engines import FORMAT, MODES, agree
from ...handmade import cell, change, commit, message, new, old, time, user
from ...options.test_reading import ACCEPTED

HIGH = [bytes([byte]) for byte in range(0x80, 0x100)]
ANY = [bytes([byte]) for byte in range(0x100)]


def decoded_alone(text: bytes, encoding: str, errors: str) -> bytes | None:
    """In UTF-8; None if it must be decoded alone."""
    if b"\0" in text:
        return None
    try:
        return text.decode(encoding, errors).encode()
    except UnicodeError:
        return None


def decoded_together(texts: Sequence[bytes], encoding: str, errors: str) -> Iterator[bytes | None]:
    joined = np.frombuffer(b"".join(text + b"\0" for text in texts), np.uint8)
    ends = np.cumsum([len(text) + 1 for text in texts]) - 1
    decoded, offsets, bad = decode_joined(joined, ends, encoding, errors)
    data, starts, is_bad = decoded.tobytes(), offsets.tolist(), bad.tolist()
    for index in range(len(texts)):
        yield None if is_bad[index] else data[starts[index] : starts[index + 1] - 1]


def check(texts: Sequence[bytes], encoding: str) -> None:
    for errors in ("strict", "replace"):
        for text, found in zip(texts, decoded_together(texts, encoding, errors), strict=True):
            assert found == decoded_alone(text, encoding, errors), (text, encoding, errors)


def test_every_accepted_encoding_can_be_joined() -> None:
    assert {*ACCEPTED} <= JOINABLE
    assert {*ACCEPTED} >= LOOKS_AHEAD


@pytest.mark.parametrize("encoding", sorted(JOINABLE))
def test_every_short_text(encoding: str) -> None:
    """All texts of a byte, all of two that begin with a high byte; in an order in which any may follow any."""
    texts = ANY + [first + second for first in HIGH for second in ANY]
    random.Random(1).shuffle(texts)
    check(texts, encoding)


LONG = ("big5hkscs", "euc_jis_2004", "euc_jisx0213", "euc_jp", "euc_kr", "gb18030", "utf-8")
"""Encodings with characters of more than two bytes."""


@pytest.mark.parametrize("encoding", LONG)
def test_texts_of_three_bytes(encoding: str) -> None:
    """Each beginning, with bytes at the edges of what may follow it."""
    seconds, thirds = (
        bytes.fromhex(digits) for digits in ("0a3039417f8081a0a1bfc2d4feff", "000a2f30393a407e7f808182a0a1bffeff")
    )
    texts = [bytes([*first, second, third]) for first in HIGH for second in seconds for third in thirds]
    random.Random(2).shuffle(texts)
    check(texts, encoding)


@pytest.mark.parametrize("encoding", sorted(JOINABLE))
def test_texts_of_any_length(encoding: str) -> None:
    """Cut anywhere, with bytes that begin or continue long sequences, line feeds and zero bytes."""
    chance = random.Random(3)
    pieces = [
        *(bytes([byte]) for byte in (0x00, 0x0A, 0x30, 0x39, 0x41, 0x7E)),
        *(
            bytes([byte])
            for byte in (0x80, 0x81, 0x8E, 0x8F, 0x95, 0xA1, 0xA4, 0xB0, 0xC2, 0xD4, 0xE0, 0xED, 0xF0, 0xFE)
        ),
        b"\x81\x30\x81\x30",
        b"\x94\x39\xda\x33",
        b"\x8f\xb0\xa1",
        b"\xa4\xd4\xa4\xa1\xa4\xd4",  # a syllable of EUC-KR in eight bytes, or the beginning of one
        b"\xa4\xd4\xa4\xa1\xa4\xbf\xa4\xd4",
        "äöü".encode(),
        "表€😀".encode("gb18030"),
    ]
    for _ in range(200):
        texts = [b"".join(chance.choices(pieces, k=chance.randrange(9))) for _ in range(chance.randrange(1, 40))]
        check(texts, encoding)


@pytest.mark.parametrize("encoding", sorted(JOINABLE))
def test_whether_the_first_the_last_or_all_are_bad(encoding: str) -> None:
    good, bads = b"text", [bytes([byte]) * count for byte in (0x81, 0x8F, 0xA4, 0xFF) for count in (1, 2, 3)]
    for bad in bads:
        for texts in ([bad, good, good], [good, good, bad], [bad] * 5, [bad], [good], []):
            check(texts, encoding)


# What the scan makes of them


PIECES = {
    "gbk": ["表", "格", "é", "\\"],
    "gb18030": ["表", "€", "ß", "😀"],
    "big5": ["表", "功", "\\"],
    "euc_jp": ["表", "か", "丂"],
    "euc_kr": ["표", "가"],
    "shift_jis": ["表", "ソ", "\\"],
    "johab": ["표"],
    "big5hkscs": ["表", "Ê̄"],
    "latin-1": ["é", "ÿ"],
    "koi8-r": ["я", "─"],
    "cp1251": ["я", "№"],
    "ascii": [],
    "utf-8": ["é", "表", "😀"],
}
"""Characters of each encoding; the last byte of some is a backslash."""


def pieces_of(encoding: str) -> list[bytes]:
    bad = [b"\xff", b"\x81", b"\x8f\xa1", b"\x81\x30", b"\xe4\xb8"]
    good = [text.encode(encoding) for text in PIECES[encoding]]
    return [*good, *good, *good, b"a", b"\n", b"\0", b"0", *bad]


SEEDS = st.integers(0, 1 << 32)
"""Of messages that are made by chance: to draw their parts, hypothesis takes longer than the engines to read them."""


def text_by(chance: random.Random, pieces: Sequence[AnyStr]) -> list[AnyStr]:
    """The parts of a text; two of three have no bad bytes, which come last."""
    return chance.choices(pieces if chance.random() < 1 / 3 else pieces[:-5], k=chance.randrange(6))


def binary_messages(seed: int, encoding: str) -> list[bytes]:
    """One to three messages of one to six rows and commits; names and some values come again."""
    chance, pieces = random.Random(seed), pieces_of(encoding)

    def text() -> bytes:
        return b"".join(text_by(chance, pieces))

    known = [b"s", *(text() for _ in range(chance.randint(2, 4)))]

    def repeated() -> bytes:
        return chance.choice(known) if chance.random() < 1 / 2 else text()

    def cells() -> list[bytes]:
        return [
            cell(repeated(), chance.choice([23, 25, 17000]), chance.choice([None, text()]))
            for _ in range(chance.randrange(4))
        ]

    def body() -> bytes:
        if chance.random() < 1 / 3:
            return commit(time(text()), user(text()))
        return change(chance.choice([b"I", b"U", b"D"]), repeated(), repeated(), new(*cells()), old(*cells()))

    return [message(*(body() for _ in range(chance.randint(1, 6)))) for _ in range(chance.randint(1, 3))]


ROOMS = [{}, {"JOINED_BYTES": 40, "MOST_FOUND": 3}, {"JOINED_BYTES": 100, "MOST_FOUND": 8}]
"""The usual room, and rooms in which most rows, or some, have too many texts."""


TABLES = [None, ["s.*"], ["*.表"]]


@pytest.mark.parametrize("errors", ["strict", "replace"])
@pytest.mark.parametrize("encoding", PIECES)
def test_both_engines_agree_on_texts(encoding: str, errors: str) -> None:
    wanted = st.fixed_dictionaries(
        {
            "mode": st.sampled_from(MODES),
            "tables": st.sampled_from(TABLES),
            "kinds": st.sampled_from([None, ["UPDATE"]]),
        }
    )

    @given(SEEDS, wanted, st.sampled_from(ROOMS))
    def check(seed: int, options: dict[str, Any], room: dict[str, int]) -> None:
        messages = binary_messages(seed, encoding)
        with pytest.MonkeyPatch.context() as monkeypatch:
            for name, value in room.items():
                monkeypatch.setattr(transcode, name, value)
            agree(messages, encoding=encoding, encoding_errors=errors, **options)

    check()


@pytest.mark.parametrize("errors", ["strict", "replace"])
@pytest.mark.parametrize("encoding", PIECES)
def test_both_engines_agree_on_relations(encoding: str, errors: str) -> None:
    """Names of pgoutput are in UTF-8 once their relation is known; values are not."""
    pieces = [piece for piece in pieces_of(encoding) if piece != b"\0"]
    wanted = st.fixed_dictionaries(
        {"mode": st.sampled_from(MODES), "tables": st.sampled_from([None, ["*.t"], ["*.表t"]])}
    )

    @given(SEEDS, wanted)
    def check(seed: int, options: dict[str, Any]) -> None:
        chance = random.Random(seed)

        def text() -> bytes:
            return b"".join(text_by(chance, pieces))

        name = text()
        other = next(other for other in iter(text, None) if other != name)
        values = [(text(), text()) for _ in range(chance.randrange(9))]
        described = hand.relation(hand.column(name), hand.column(other), table=text() + b"t")
        inserts = [hand.change(b"I", hand.image(b"N", *map(hand.text, pair))) for pair in values]
        deletes = [hand.change(b"D", hand.image(b"O", *map(hand.text, pair))) for pair in values]
        agree([described, *inserts, *deletes], format="pgoutput", encoding=encoding, encoding_errors=errors, **options)

    check()


TEXT_STYLES = ("gaussdb-json", "gaussdb-text", "mppdb-json", "test-decoding", "opengauss-test-decoding")


@pytest.mark.parametrize("encoding", PIECES)
@pytest.mark.parametrize("format", TEXT_STYLES)
def test_both_engines_agree_on_text_styles(format: str, encoding: str) -> None:
    """Any bytes: they are written as those of Latin-1, and read in the encoding."""
    pieces = [piece.decode("latin-1") for piece in pieces_of(encoding) if piece != b"\0"]
    reading = st.fixed_dictionaries(
        {
            "mode": st.sampled_from(MODES),
            "encoding_errors": st.sampled_from(["strict", "replace"]),
            "tables": st.sampled_from([None, ["*.t"]]),
        }
    )

    def text(chance: random.Random) -> str:
        return "".join(text_by(chance, pieces))

    @given(SEEDS, reading)
    def check(seed: int, options: dict[str, Any]) -> None:
        chance = random.Random(seed)
        rows = []
        for _ in range(chance.randint(1, 6)):
            names = {text(chance) + "t" for _ in range(chance.randint(1, 3))}
            rows.append((sorted(names), text(chance)))
        events = [
            wf.Insert(
                table_schema="s",
                table_name=names[0].replace(" ", ""),
                new=wf.TupleData(tuple(names), (value,) * len(names), ("text",) * len(names)),
            )
            for names, value in rows
        ]
        messages = [*wf.encode(events, format, encoding="latin-1")]
        agree(messages, format=format, encoding=encoding, **options)

    check()


SCANNED = ("gaussdb-binary", "gaussdb-json", "gaussdb-text", "mppdb-json", "test-decoding", "pgoutput")


@pytest.mark.parametrize("format", SCANNED)
@pytest.mark.parametrize("encoding", [name for name in PIECES if name not in ("ascii", "utf-8")])
def test_good_texts_need_no_second_look(encoding: str, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With other than ASCII in every name and value, and line feeds."""
    word = "".join(text for text in PIECES[encoding] if text != "\\")
    image = wf.TupleData((word, f"{word}2"), (f"{word}\n{word}", None), ("text", "text"))
    insert = wf.Insert(lsn=0 if format == FORMAT else None, table_schema="public", table_name=f"{word}t", new=image)
    messages = [*wf.encode([insert] * 50, format, encoding=encoding)]
    expected = agree(messages, format=format, encoding=encoding).table

    read: list[Any] = []
    read_row = Scanner._read

    def remember(scanner: Scanner, *arguments: Any) -> Any:
        read.append(arguments)
        return read_row(scanner, *arguments)

    monkeypatch.setattr(Scanner, "_read", remember)
    monkeypatch.setattr(SecondLook, "finish", None)
    assert wf.arrow.changes(messages, format, encoding=encoding).equals(expected)
    assert not read


@pytest.mark.slow
def test_rows_of_many_batches_and_threads() -> None:
    """Texts on both sides of the borders of messages, of batches, and of what is joined."""
    texts = ["表", "a\nb", "功能" * 400, "", "x" * 3000 + "é", "格" * 200_000]
    rows = [
        change(b"I", b"s", "表".encode("gbk"), new(cell("列".encode("gbk"), 25, texts[number % 5].encode("gbk"))))
        for number in range(12_000)
    ]
    long = change(b"I", b"s", b"t", new(cell(b"a", 25, texts[5].encode("gbk"))))
    messages = [message(*rows[begin : begin + 500], long) for begin in range(0, len(rows), 500)]
    expected = wf.arrow.changes(messages, "gaussdb-binary", encoding="gbk", engine="declaration")
    for threads in (1, 2):
        assert wf.arrow.changes(messages, "gaussdb-binary", encoding="gbk", threads=threads).equals(expected)


def test_text_with_more_room_than_the_scratch_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters that take three bytes of UTF-8 for one."""
    rows = [change(b"I", b"s", b"t", new(cell(b"a", 25, b"\x80" * 60_000))) for _ in range(60)]
    expected = wf.arrow.changes([message(*rows)], "gaussdb-binary", encoding="koi8-r", engine="declaration")
    assert wf.arrow.changes([message(*rows)], "gaussdb-binary", encoding="koi8-r").equals(expected)
    monkeypatch.setattr(transcode, "MOST_TEXT", 500_000)
    assert wf.arrow.changes([message(*rows)], "gaussdb-binary", encoding="koi8-r").equals(expected)


@pytest.mark.parametrize("mode", MODES)
def test_the_first_bad_text_is_told(mode: str) -> None:
    """The rows before it come out, and the error says where it is."""

    def row(value: bytes) -> bytes:
        return change(b"I", b"s", "表".encode("gbk"), new(cell(b"a", 25, value)))

    good, bad = row("值".encode("gbk")), row(b"\xd6")
    for bodies in ([good] * 9 + [bad] + [good] * 9 + [bad], [bad, good], [good, bad], [bad] * 30):
        agree([message(*bodies), message(good)], mode=mode, encoding="gbk")
