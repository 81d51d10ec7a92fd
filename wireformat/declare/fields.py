"""The fields that construct lacks: length-prefixed text, counted items with an index in the path, tagged fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from construct import Construct, Container, Subconstruct, stream_write

from ..errors import BadLength, BadTag, BadText, BadValue, EncodeError
from ..identifiers import quote_identifier, unquote_identifier


class Text(Subconstruct):
    """A length, then so many bytes of text in the encoding that `parse` and `build` are called with.

    length  the field that holds the length
    null    a length that means SQL NULL and has no bytes; read and written as None
    """

    def __init__(self, length: Construct, null: int | None = None) -> None:
        super().__init__(length)
        self.null = null

    def _parse(self, stream: Any, context: Any, path: str) -> str | None:
        start = stream.position
        length = self.subcon._parsereport(stream, context, path)
        if length == self.null:
            return None
        if length > stream.left:
            raise BadLength(
                f"a length of at most {stream.left}, the rest of the record",
                f"{length}",
                message_offset=start,
                path=path,
                spot=stream.message[start : stream.position],
            )
        start = stream.position
        data = stream.read(length)
        params = context._params
        try:
            return str(data, params.encoding, params.errors)
        except UnicodeDecodeError as error:
            raise BadText(
                f"text in {params.encoding}",
                f"{error.end - error.start} bytes that are none",
                message_offset=start,
                field_offset=error.start,
                path=path,
            ) from None

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None and self.null is not None:
            self.subcon._build(self.null, stream, context, path)
            return obj
        if not isinstance(obj, str):
            raise EncodeError(f"{path}: expected a str, got {type(obj).__name__}")
        try:
            data = obj.encode(context._params.encoding)
        except UnicodeEncodeError as error:
            raise EncodeError(f"{path}: character {error.start} has no bytes in {context._params.encoding}") from None
        limit = 256 ** self.subcon.sizeof() - 1
        if len(data) > limit or len(data) == self.null:
            raise EncodeError(f"{path}: expected at most {limit} bytes, got {len(data)}")
        self.subcon._build(len(data), stream, context, path)
        stream_write(stream, data, len(data), path)
        return obj


class Identifier(Text):
    """Length-prefixed text that holds a name as SQL prints it: unquoted on reading, quoted on writing."""

    def _parse(self, stream: Any, context: Any, path: str) -> str | None:
        start = stream.position
        text = super()._parse(stream, context, path) or ""
        try:
            return unquote_identifier(text)
        except ValueError:
            raise BadValue(
                "a name, in double quotes if it begins with one, inner ones doubled",
                "a double quote that is not closed at the end, or not doubled",
                message_offset=start,
                path=path,
            ) from None

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return super()._build(quote_identifier(obj) if isinstance(obj, str) else obj, stream, context, path)


class Counted(Subconstruct):
    """A count, then so many items; the path of an error names the item: `cells[3]`."""

    def __init__(self, count: Construct, item: Construct) -> None:
        super().__init__(item)
        self.count = count

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        count = self.count._parsereport(stream, context, path)
        return [self.subcon._parsereport(stream, context, f"{path}[{index}]") for index in range(count)]

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.count._build(len(obj), stream, context, path)
        for index, item in enumerate(obj):
            self.subcon._build(item, stream, context, f"{path}[{index}]")
        return obj


class Tagged(Construct):
    """Optional fields to the end of the record, each behind a byte that names it, each at most once.

    fields      tag to (name, declaration), in the order in which they are written
    in_order    whether they must be read in that order too

    The result holds only the fields that are there. In paths a field stands beside the group, not inside it.
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
                    _one_of(allowed), f"{_shown(tag[0])}", message_offset=start, path=_beside(path, "tag"), spot=tag
                )
            name, field = allowed.pop(tag[0])
            if self.in_order:
                later = list(self.fields)[list(self.fields).index(tag[0]) + 1 :]
                allowed = {key: allowed[key] for key in later}
            found[name] = field._parsereport(stream, context, _beside(path, name))
        return found

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for tag, (name, field) in self.fields.items():
            if obj.get(name) is not None:
                stream_write(stream, bytes([tag]), 1, path)
                field._build(obj[name], stream, context, _beside(path, name))
        return obj


def _beside(path: str, name: str) -> str:
    return path.rpartition(" -> ")[0] + f" -> {name}"


def _shown(byte: int) -> str:
    return repr(chr(byte)) if 32 < byte < 127 else f"0x{byte:02X}"


def _one_of(tags: Mapping[int, Any]) -> str:
    return " or ".join([*(f"'{chr(tag)}'" for tag in tags), "the end of the record"])
