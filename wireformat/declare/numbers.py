"""construct's numbers, Tell and Struct, read several times as fast from a Window: corrupt records are read by them."""

from __future__ import annotations

import struct
from typing import Any

import construct
from construct import Computed, Construct, Container, FormatField, IfThenElse, Renamed, StreamError

from ..errors import counted
from .fields import Counted


class Number(FormatField):
    """A number of fixed size, which is read from a Window."""

    def __init__(self, format: str) -> None:
        super().__init__(format[0], format[1])
        self._unpack_from = struct.Struct(format).unpack_from
        self.rule = f"{'signed' if format[1].islower() else 'unsigned'} integer of {counted(self.length, 'byte')}"

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        at = stream.position
        stream.last, stream.wanted = at, self.length
        end = at + self.length
        if end > stream.stop:
            stream.position = stream.stop
            raise StreamError("too few bytes", path=path)
        stream.position = end
        number = self._unpack_from(stream.message, at)[0]
        if stream.trace is not None:
            stream.note(at, path, self.rule, number)
        return number


class Struct(construct.Struct):
    """Fields one after the other, as in construct. They have no context where none asks for it."""

    def __init__(self, *fields: Construct) -> None:
        super().__init__(*fields)
        self._steps = [(field.name, _unnamed(field), f" -> {field.name}" if field.name else "") for field in fields]
        self._is_plain = not any(_asks(field) for _, field, _ in self._steps)

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        if not self._is_plain:
            return super()._parse(stream, context, path)
        found = Container()
        for name, field, step in self._steps:
            value = field._parse(stream, context, path + step)
            if name:
                found[name] = value
        return found


def _unnamed(field: Construct) -> Construct:
    return field.subcon if isinstance(field, Renamed) else field


def _asks(field: Construct) -> bool:
    """Whether what a field is depends on the fields before it, or on how many bytes follow."""
    return isinstance(field, (IfThenElse, Computed)) or (
        isinstance(field, Counted) and not isinstance(field.count, Construct)
    )


class _Tell(Construct):
    """Where the next field begins, in a Window."""

    def __init__(self) -> None:
        super().__init__()
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return stream.position

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return stream.tell()


Tell = _Tell()
Int8ub, Int16ub, Int32ub, Int64ub = (Number(f">{letter}") for letter in "BHLQ")
Int32sb, Int64sb = (Number(f">{letter}") for letter in "lq")
