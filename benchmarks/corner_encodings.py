"""Corners of other encodings: the same row changes with names and texts in another encoding, or with invalid bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

import wireformat as wf

from .corner import Corner
from .generate import BINARY, JSON, PGOUTPUT, SEED, TEXT, as_postgres, first_events, transactions

SERIAL = ("test-decoding", "mppdb-json")
FORMATS = (BINARY, JSON, TEXT, *SERIAL, PGOUTPUT)

EASY = "ASCII"

Change = Callable[[wf.Event], wf.Event]


WORDS = {
    "ascii": ("number", "client", "state", "total", "money", "when", "present", "note", "table"),
    "chinese": ("编号", "客户", "状态", "金额", "货币", "日期", "礼物", "备注", "表"),
    "traditional": ("編號", "客戶", "狀態", "金額", "貨幣", "日期", "禮物", "備註", "表"),
    "japanese": ("番号", "顧客", "状態", "合計", "通貨", "日付", "ギフト", "備考", "表"),
    "korean": ("번호", "고객", "상태", "합계", "통화", "날짜", "선물", "비고", "표"),
    "german": ("Schlüssel", "Käufer", "für", "Höhe", "Währung", "später", "Präsent", "Größe", "größte"),
    "russian": ("номер", "клиент", "статус", "сумма", "валюта", "дата", "подарок", "заметка", "таблица"),
}
"""Of a language: names of the eight columns, and of the table. The values of text columns begin with one of them."""

TEXT_TYPES = ("character", "character varying", "text")


def in_language(language: str, event: wf.Event) -> wf.Event:
    """The event with names and texts of a language, in every row."""
    words = WORDS[language]
    if isinstance(event, wf.Relation):
        table_name = f"{words[-1]}_{event.table_name}"
        return replace(event, table_name=table_name, columns=words[:-1], key_columns=words[:1])
    if not isinstance(event, wf.RowChange):
        return event
    sides: dict[str, Any] = {side: _in_language(words, getattr(event, side)) for side in ("new", "old")}
    return replace(event, table_name=f"{words[-1]}_{event.table_name}", **sides)


def _in_language(words: Sequence[str], image: wf.TupleData | None) -> wf.TupleData | None:
    if image is None:
        return None
    values = [
        f"{words[index]} {_ascii(value)}" if isinstance(value, str) and type in TEXT_TYPES else value
        for index, (value, type) in enumerate(zip(image.values, image.types, strict=True))
    ]
    return replace(image, names=tuple(words[: len(image.names)]), values=tuple(values))


def _ascii(value: str) -> str:
    return value.encode("ascii", "ignore").decode()


def with_bad_value(byte: int, event: wf.Event) -> wf.Event:
    """The event with one value in its new image that has this byte, if it is written in Latin-1."""
    changed = in_language("ascii", event)
    if not isinstance(changed, wf.RowChange) or changed.new is None:
        return changed
    values = list(changed.new.values)
    place = next(index for index, type in enumerate(changed.new.types) if type in TEXT_TYPES)
    values[place] = f"caf{chr(byte)} {values[place]}"
    return replace(changed, new=replace(changed.new, values=tuple(values)))


def corners(name: str, change: Change, written: str = "utf-8", **options: Any) -> Iterator[Corner]:
    """The corner in every format.

    change    makes the events of the corner out of those of the capture
    written   the encoding of the messages
    options   of wf.arrow.changes
    """
    for format in FORMATS:
        easy = None if name == EASY else name_of(EASY, format)
        yield Corner(name_of(name, format), format, partial(_messages, format, change, written), easy, options)


def in_encoding(encoding: str, language: str) -> Iterator[Corner]:
    """Names and values of another encoding, in every row."""
    return corners(f"{encoding}, {language}", partial(in_language, language), encoding, encoding=encoding)


def replacing(encoding: str, byte: int) -> Iterator[Corner]:
    """One value in every new image is not valid in the encoding."""
    options = {"encoding": encoding, "encoding_errors": "replace"}
    return corners(f"{encoding}, replace", partial(with_bad_value, byte), "latin-1", **options)


def name_of(corner: str, format: str) -> str:
    """What a corner is called in a format."""
    return f"{format}: {corner}"


def serial(event: wf.Event) -> wf.Event:
    """The event as serial plugins and test_decoding write it: they know the transaction by its number."""
    if isinstance(event, wf.Begin):
        return wf.Begin(xid=event.csn)
    if isinstance(event, wf.Commit):
        return wf.Commit(xid=event.xid - 900_000 if event.xid else None)
    return replace(event, lsn=None)


def as_format(events: Iterable[wf.Event], format: str) -> Iterable[wf.Event]:
    """The events as the format writes them."""
    if format == PGOUTPUT:
        return as_postgres(events)
    return map(serial, events) if format in SERIAL else events


def _messages(format: str, change: Change, written: str, changes: int) -> pa.Array:
    events = first_events(chain.from_iterable(transactions(SEED)), changes)
    options = {"sending-batch": 1} if format in (BINARY, JSON, TEXT) else {}
    changed = map(change, as_format(events, format))
    return pa.array(wf.encode(changed, format, options=options, encoding=written), pa.binary())


ENCODINGS: tuple[Corner, ...] = tuple(
    chain(
        corners(EASY, partial(in_language, "ascii")),
        in_encoding("gbk", "chinese"),
        in_encoding("gb18030", "chinese"),
        in_encoding("gb18030", "german"),
        in_encoding("big5", "traditional"),
        in_encoding("euc_jp", "japanese"),
        in_encoding("shift_jis", "japanese"),
        in_encoding("euc_kr", "korean"),
        in_encoding("latin-1", "german"),
        in_encoding("koi8-r", "russian"),
        in_encoding("cp1251", "russian"),
        replacing("utf-8", 0xE9),
        replacing("gbk", 0xFF),
        replacing("gb18030", 0xFF),
    )
)
