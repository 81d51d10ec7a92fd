"""Records of numbers and short texts, written by functions that are made out of their declarations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import fields
from typing import Any, NamedTuple

from construct import Construct, Renamed

from ...declare import Coded, Number, Struct, Tagged, Text, Time, ZeroEnded
from ...events import OF_STREAM, Event
from ...times import MICROS_OF_2000, parse_commit_time
from .layouts import REFUSALS

Write = Callable[[Any, str], bytes]
"""Writes the value of a field in an encoding; raises one of REFUSALS for one that the declaration must judge."""


class RecordField(NamedTuple):
    """A field of a record: its name, its declaration, and the byte before it, if it is written only where it has a
    value."""

    name: str
    declaration: Construct
    tag: bytes | None


class RecordForm(NamedTuple):
    """How events of a type are written.

    kind     the first byte
    fields   what follows it
    said     the fields of the event that the format has a place for, also those that options leave out
    """

    kind: bytes
    fields: tuple[RecordField, ...]
    said: Set[str]

    @classmethod
    def of(cls, kind: int, declaration: Construct, said: Set[str], tagged: Collection[str]) -> RecordForm:
        """The form of records with this declaration; `tagged` are the tagged fields that options ask for."""
        found: list[RecordField] = []
        for field in declaration.subcons:
            one = _unnamed(field)
            if isinstance(one, Tagged):
                items = one.fields.items()
                found += [RecordField(name, inner, bytes((tag,))) for tag, (name, inner) in items if name in tagged]
            else:
                found.append(RecordField(field.name, one, None))
        return cls(bytes((kind,)), tuple(found), said)


class DirectRecords:
    """Writes events whose declarations hold nothing but numbers, times, texts and flags.

    records   for each name of a kind of record: its event, its declaration, and the fields that it has a place for
    """

    def __init__(self, records: Mapping[int, tuple[type[Event], Construct, Set[str]]]) -> None:
        self._records: dict[int, tuple[type[Event], Write, list[tuple[str, Any]]]] = {}
        for kind, (event, declaration, said) in records.items():
            write = _record_writer(declaration)
            if write is not None:
                others = [(one.name, one.default) for one in fields(event) if one.name not in (*OF_STREAM, *said)]
                self._records[kind] = event, write, others

    def write(self, kind: int, event: Event, more: Mapping[str, Any], encoding: str) -> bytes | None:
        """Kind and body of a record; None if the declaration must write it, or say what is wrong with it.

        more   values of fields of the record that are no fields of the event
        """
        found = self._records.get(kind)
        if found is None or type(event) is not found[0]:
            return None
        _, write, others = found
        for name, default in others:
            if getattr(event, name) != default:
                return None
        try:
            return bytes((kind,)) + write(_Values(event, more), encoding)
        except REFUSALS:
            return None


class _Values(dict[str, Any]):
    """Values of a record by name: those given, and fields of the event."""

    def __init__(self, event: Event, more: Mapping[str, Any]) -> None:
        super().__init__(more)
        self._event = event

    def __missing__(self, name: str) -> Any:
        return getattr(self._event, name)


def _record_writer(declaration: Construct) -> Write | None:
    """The writer of a Struct; None if one of its fields is of another kind."""
    parts = []
    for field in declaration.subcons:
        write = _field_writer(field)
        if write is None:
            return None
        parts.append((field.name, write))

    def write_record(values: Any, encoding: str) -> bytes:
        return b"".join([write(values[name], encoding) for name, write in parts])

    return write_record


def _unnamed(field: Construct) -> Construct:
    return field.subcon if isinstance(field, Renamed) else field


def _field_writer(field: Construct) -> Write | None:
    field = _unnamed(field)
    make = next((make for kind, make in _MAKE.items() if type(field) is kind), None)
    return None if make is None else make(field)


def _number(field: Any) -> Write:
    pack = struct.Struct(field.fmtstr).pack
    return lambda value, encoding: pack(value)


def _text(field: Any) -> Write:
    pack = struct.Struct(field.subcon.fmtstr).pack

    def write(value: Any, encoding: str) -> bytes:
        data = str.encode(value, encoding)
        return pack(len(data)) + data

    return write if field.null is None else None  # type: ignore[return-value]


def _zero_ended(field: Any) -> Write:
    def write(value: Any, encoding: str) -> bytes:
        data = str.encode(value, encoding)
        if 0 in data:
            raise ValueError("0")
        return data + b"\0"

    return write


def _time(field: Any) -> Write:
    pack = struct.Struct(field.subcon.fmtstr).pack

    def write(value: Any, encoding: str) -> bytes:
        return pack(parse_commit_time(value) - MICROS_OF_2000)  # type: ignore[operator]  # a TypeError is declined

    return write


def _coded(field: Any) -> Write:
    pack = struct.Struct(field.subcon.fmtstr).pack
    numbers: Mapping[Any, int] = field.numbers

    def write(value: Any, encoding: str) -> bytes:
        if value not in numbers:
            raise ValueError("code")
        return pack(numbers[value])

    return write


def _tagged(field: Any) -> Write | None:
    parts = [(bytes((tag,)), name, _field_writer(one)) for tag, (name, one) in field.fields.items()]
    if any(write is None for _, _, write in parts):
        return None

    def write_tagged(values: Any, encoding: str) -> bytes:
        found = [(tag, write, values.get(name)) for tag, name, write in parts]
        return b"".join([tag + write(value, encoding) for tag, write, value in found if write and value is not None])

    return write_tagged


_MAKE: dict[type[Construct], Callable[[Any], Write | None]] = {
    Number: _number,
    Text: _text,
    ZeroEnded: _zero_ended,
    Time: _time,
    Coded: _coded,
    Tagged: _tagged,
    Struct: _record_writer,
}
"""How a writer is made of each kind of field; there is none of others."""
