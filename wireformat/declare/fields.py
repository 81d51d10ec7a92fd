"""The fields that construct lacks: text with a length or a zero byte, counted items with an index in the path, tagged
and chosen fields, times; and its numbers, Tell and Struct, read several times as fast from a Window."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import construct
from construct import (
    Computed,
    Construct,
    Container,
    FormatField,
    IfThenElse,
    Renamed,
    StreamError,
    Subconstruct,
    stream_write,
)

from ..errors import BadLength, BadTag, BadText, BadValue, EncodeError, ShortData, counted, encoded
from ..identifiers import quote_identifier, unquote_identifier
from ..times import MICROS_OF_2000, parse_commit_time, time_text
from .run import field_path


class Text(Subconstruct):
    """A length, then as many bytes of text in the encoding that `parse` and `build` are called with.

    length  the field that holds the length
    null    a length that means SQL NULL and has no bytes; read and written as None
    """

    rule = "text of that length"

    def __init__(self, length: Construct, null: int | None = None) -> None:
        super().__init__(length)
        self.null = null

    def _parse(self, stream: Any, context: Any, path: str) -> str | None:
        start = stream.position
        length = self.subcon._parse(stream, context, path)
        if stream.trace is not None:
            _note_length(stream, start, path, f"length of the text, {self.subcon.rule}", length)
        if length == self.null:
            if stream.trace is not None:
                stream.note(start, path, f"NULL, which is length {length}")
            return None
        begin = stream.position
        if length > stream.stop - begin:
            raise BadLength(
                f"a length of at most {stream.left}, the rest of the record",
                f"{length}",
                message_offset=start,
                path=path,
                spot=stream.message[start:begin],
            )
        text = self._read(stream.read(length), context["_params"], begin, path)
        if stream.trace is not None:
            stream.note(begin, f"{path} -> text", self.rule, text)
            stream.trace.whole(field_path(path), f"a length, then {self.rule}", text)
        return text

    def _read(self, data: bytes, params: Any, start: int, path: str) -> str:
        return _text(data, params, start, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None and self.null is not None:
            self.subcon._build(self.null, stream, context, path)
            return obj
        data = encoded(obj, path, context._params.encoding)
        limit = 256 ** self.subcon.sizeof() - 1
        if len(data) > limit or len(data) == self.null:
            raise EncodeError(f"{path}: expected at most {counted(limit, 'byte')}, got {len(data)}")
        self.subcon._build(len(data), stream, context, path)
        stream_write(stream, data, len(data), path)
        return obj


class Identifier(Text):
    """Length-prefixed text that holds a name as SQL prints it: unquoted on reading, quoted on writing."""

    rule = "a name of that length, in double quotes where SQL needs them"

    def _read(self, data: bytes, params: Any, start: int, path: str) -> str:
        if params["errors"] == "strict":
            return self._unquoted(super()._read(data, params, start, path), start, path)
        # A character whose end is missing would take the quote after it.
        name = self._unquoted(data.decode("latin-1"), start, path).encode("latin-1")
        return super()._read(name, params, start, path)

    def _unquoted(self, text: str, start: int, path: str) -> str:
        try:
            return unquote_identifier(text)
        except ValueError:
            raise BadValue(
                "a name, in double quotes if it begins with one, inner ones doubled",
                "a double quote that is not closed at the end, or not doubled",
                message_offset=start - self.subcon.sizeof(),
                path=path,
            ) from None

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return super()._build(quote_identifier(obj) if isinstance(obj, str) else obj, stream, context, path)


class ZeroEnded(Construct):
    """Text up to a zero byte, in the encoding that `parse` and `build` are called with."""

    def _parse(self, stream: Any, context: Any, path: str) -> str:
        start = stream.position
        end = stream.message.find(0, start, stream.stop)
        if end < 0:
            raise ShortData("a zero byte that ends the text", "the end of the record", message_offset=start, path=path)
        text = _text(stream.read(end + 1 - start)[:-1], context._params, start, path)
        if stream.trace is not None:
            stream.note(start, path, "text up to a zero byte", text)
        return text

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        data = encoded(obj, path, context._params.encoding)
        if 0 in data:
            raise EncodeError(f"{path}: a zero byte cannot be said")
        stream_write(stream, data + b"\0", len(data) + 1, path)
        return obj


class Chosen(Construct):
    """A byte that says what follows: read as (byte, value).

    fields  byte to the declaration of what follows; None where nothing does
    """

    def __init__(self, fields: Mapping[int, Construct | None]) -> None:
        super().__init__()
        self.fields = dict(fields)

    def _parse(self, stream: Any, context: Any, path: str) -> tuple[int, Any]:
        start = stream.position
        tag = stream.read(1)
        if not tag:
            raise ShortData(_one_of(self.fields), "the end of the record", message_offset=start, path=path)
        if tag[0] not in self.fields:
            raise BadTag(_one_of(self.fields), _shown(tag[0]), message_offset=start, path=path)
        if stream.trace is not None:
            stream.note(start, f"{path} -> tag", f"a byte, {_one_of(self.fields)}", chr(tag[0]))
        field = self.fields[tag[0]]
        return tag[0], None if field is None else field._parse(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        tag, value = obj
        stream_write(stream, bytes([tag]), 1, path)
        field = self.fields[tag]
        if field is not None:
            field._build(value, stream, context, path)
        return obj


class Told(Subconstruct):
    """A field that is there if a fact that `parse` or `build` is called with says so; None otherwise.

    fact    its name
    """

    def __init__(self, fact: str, field: Construct) -> None:
        super().__init__(field)
        self.fact = fact

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return self.subcon._parse(stream, context, path) if context["_params"][self.fact] else None

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return self.subcon._build(obj, stream, context, path) if context["_params"][self.fact] else obj


class Sized(Subconstruct):
    """A length, then as many bytes, taken as they are."""

    def _parse(self, stream: Any, context: Any, path: str) -> bytes:
        start = stream.position
        length = self.subcon._parse(stream, context, path)
        if stream.trace is not None:
            _note_length(stream, start, path, f"length of the bytes, {self.subcon.rule}", length)
        if not 0 <= length <= stream.left:
            raise BadLength(
                f"a length of at most {stream.left}, the rest of the record",
                f"{length}",
                message_offset=start,
                path=path,
                spot=stream.message[start : stream.position],
            )
        begin = stream.position
        data: bytes = stream.read(length)
        if stream.trace is not None:
            stream.note(begin, f"{path} -> bytes", "bytes of that length", data)
            stream.trace.whole(field_path(path), "a length, then bytes of that length", data)
        return data

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.subcon._build(len(obj), stream, context, path)
        stream_write(stream, obj, len(obj), path)
        return obj


class Coded(Subconstruct):
    """A number that stands for one of some values.

    values  number to value
    words   what is expected, for errors
    """

    def __init__(self, number: Construct, values: Mapping[int, Any], words: str) -> None:
        super().__init__(number)
        self.values = dict(values)
        self.numbers = {value: number for number, value in values.items()}
        self.words = words

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        start = stream.position
        number = self.subcon._parse(stream, context, path)
        if number not in self.values:
            raise BadValue(self.words, f"{number}", message_offset=start, path=path)
        value = self.values[number]
        if stream.trace is not None:
            stream.note(start, path, f"{self.words}, {self.subcon.rule}", number if value is None else value)
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj not in self.numbers:
            raise EncodeError(f"{path}: expected {self.words}")
        return self.subcon._build(self.numbers[obj], stream, context, path)


class Time(Subconstruct):
    """Microseconds since 2000 in UTC, as the text that PostgreSQL prints in style ISO."""

    def _parse(self, stream: Any, context: Any, path: str) -> str:
        start = stream.position
        found = time_text(self.subcon._parse(stream, context, path) + MICROS_OF_2000)
        if found is None:
            raise BadValue("a time from 4713 BC to 294246", "another", message_offset=start, path=path)
        if stream.trace is not None:
            stream.note(start, path, f"microseconds since 2000-01-01, {self.subcon.rule}", found)
        return found

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        micros = parse_commit_time(obj) if isinstance(obj, str) else None
        if micros is None:
            raise EncodeError(f"{path}: expected a time, as 2026-11-21 01:02:03+00")
        return self.subcon._build(micros - MICROS_OF_2000, stream, context, path)


class Counted(Subconstruct):
    """Items whose number is given; the path of an error names the item: `cells[3]`.

    count   the field before the items, or a function of the fields before
    """

    def __init__(self, count: Construct | Callable[[Any], int], item: Construct) -> None:
        super().__init__(item)
        self.count = count

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        count, start = self.count, stream.position
        number = count._parse(stream, context, path) if isinstance(count, Construct) else count(context)
        if stream.trace is not None and isinstance(count, Construct):
            stream.note(start, f"{path.rpartition(' -> ')[0]} -> count", f"how many follow, {count.rule}", number)
        found = [] if stream.trace is not None else self.good_items(stream, context, number)
        return found + [self.subcon._parse(stream, context, f"{path}[{index}]") for index in range(len(found), number)]

    def good_items(self, stream: Any, context: Any, most: int) -> list[Any]:
        """The first items, as far as a faster reader takes them; the items after them are read as declared."""
        return []

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if isinstance(self.count, Construct):
            self.count._build(len(obj), stream, context, path)
        for index, item in enumerate(obj):
            self.subcon._build(item, stream, context, f"{path}[{index}]")
        return obj


class Tagged(Construct):
    """Optional fields to the end of the record, each after a byte that names it, each at most once.

    fields      tag to (name, declaration), in the order in which they are written
    in_order    whether they must be read in that order too

    The result holds only the fields that are there. In paths, a field is beside the group, not inside it.
    """

    def __init__(self, fields: Mapping[int, tuple[str, Construct]], *, in_order: bool) -> None:
        super().__init__()
        self.fields = dict(fields)
        self.in_order = in_order

    def _parse(self, stream: Any, context: Any, path: str) -> Container:
        found = Container()
        allowed = dict(self.fields)
        while stream.left:
            start = stream.position
            tag = stream.read(1)
            if tag[0] not in allowed:
                raise BadTag(
                    _one_of(allowed, "the end of the record"),
                    f"{_shown(tag[0])}",
                    message_offset=start,
                    path=_beside(path, "tag"),
                    spot=tag,
                )
            name, field = allowed.pop(tag[0])
            if stream.trace is not None:
                rule = f"a byte that names the field, {_one_of(self.fields)}"
                stream.note(start, f"{_beside(path, name)} -> tag", rule, chr(tag[0]))
            if self.in_order:
                later = list(self.fields)[list(self.fields).index(tag[0]) + 1 :]
                allowed = {key: allowed[key] for key in later}
            found[name] = field._parse(stream, context, _beside(path, name))
        return found

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for tag, (name, field) in self.fields.items():
            if obj.get(name) is not None:
                stream_write(stream, bytes([tag]), 1, path)
                field._build(obj[name], stream, context, _beside(path, name))
        return obj


def _note_length(stream: Any, start: int, path: str, rule: str, length: int) -> None:
    stream.note(start, f"{path} -> length", rule, length)


def _text(data: bytes, params: Any, start: int, path: str) -> str:
    try:
        return str(data, params["encoding"], params["errors"])
    except UnicodeDecodeError as error:
        raise BadText(
            f"text in {params.encoding}",
            counted(error.end - error.start, "invalid byte"),
            message_offset=start,
            field_offset=error.start,
            path=path,
        ) from None


def _beside(path: str, name: str) -> str:
    return path.rpartition(" -> ")[0] + f" -> {name}"


def _shown(byte: int) -> str:
    return repr(chr(byte)) if 32 < byte < 127 else f"0x{byte:02X}"


def _one_of(tags: Mapping[int, Any], *others: str) -> str:
    return " or ".join([*(f"'{chr(tag)}'" for tag in tags), *others])


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
