"""The records of the formats as Markdown tables, from their declarations: `python -m tools.site.byte_tables`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from construct import Computed, Construct, FormatField, IfThenElse, Renamed

from wireformat.declare import (
    Chosen,
    Coded,
    Counted,
    Identifier,
    Sized,
    Struct,
    Tagged,
    Tell,
    Text,
    Time,
    Told,
    ZeroEnded,
)
from wireformat.formats import gaussdb_binary
from wireformat.formats.pgoutput import messages as pgoutput
from wireformat.framing import copy_data

from .grammar_tables import text_sections
from .pages import DOCS

HEAD = ["| bytes | field | type | content |", "|---|---|---|---|"]
NUMBERS = {"B": "uint8", "H": "uint16", "L": "uint32", "Q": "uint64", "l": "int32", "q": "int64"}
"""construct's letters of numbers; all are big-endian."""

Row = tuple[str, str, str, str]
"""Bytes, field, type, content."""


def rows(field: Construct, path: str = "") -> Iterator[Row]:
    """Yields the rows of a table of a declaration's fields."""
    name = ""
    while isinstance(field, Renamed):
        name, field = field.name, field.subcon
    path = f"{path}.{name}" if path and name else path or name
    yield from _rows_of(field)(field, path)


def _rows_of(field: Construct) -> Callable[[Any, str], Iterator[Row]]:
    if field is Tell or isinstance(field, Computed):
        return lambda field, path: iter(())
    for kind in type(field).__mro__:
        if kind in READERS:
            return READERS[kind]
    raise TypeError(f"no rows for {type(field).__name__}: add it to READERS of {__name__}")


def _number(field: FormatField, path: str) -> Iterator[Row]:
    yield str(field.length), path, NUMBERS[field.fmtstr[1:]], ""


def _struct(field: Struct, path: str) -> Iterator[Row]:
    for part in field.subcons:
        yield from rows(part, path)


def _text(field: Text, path: str) -> Iterator[Row]:
    ((size, _, kind, _),) = rows(field.subcon, path)
    null = "" if field.null is None else f"; {field.null:X} hex is NULL, without bytes"
    yield size, f"{path}.length", kind, f"bytes that follow{null}"
    yield "length", path, "text", "a name, quoted as in SQL" if isinstance(field, Identifier) else ""


def _sized(field: Sized, path: str) -> Iterator[Row]:
    ((size, _, kind, _),) = rows(field.subcon, path)
    yield size, f"{path}.length", kind, "bytes that follow"
    yield "length", path, "bytes", ""


def _zero_ended(field: ZeroEnded, path: str) -> Iterator[Row]:
    yield "to a zero byte", path, "text", ""


def _time(field: Time, path: str) -> Iterator[Row]:
    ((size, _, kind, _),) = rows(field.subcon, path)
    yield size, path, kind, "microseconds since 2000-01-01 UTC"


def _coded(field: Coded, path: str) -> Iterator[Row]:
    ((size, _, kind, _),) = rows(field.subcon, path)
    meanings = {number: _meaning(value) for number, value in field.values.items()}
    shown = ", ".join(f"{_byte(number)} {meaning}".rstrip() for number, meaning in meanings.items())
    yield size, path, kind, shown if len(meanings) > 1 else f"always {shown}"


def _meaning(value: Any) -> str:
    if isinstance(value, tuple):
        names = ("cascade", "restart identity")
        return " and ".join(name for name, is_set in zip(names, value, strict=True) if is_set) or "neither"
    return {True: "yes", False: "no", None: ""}.get(value, str(value))


def _byte(number: int) -> str:
    return f"`{chr(number)}`" if 32 < number < 127 else str(number)


def _told(field: Told, path: str) -> Iterator[Row]:
    for size, inner, kind, content in rows(field.subcon, path):
        yield size, inner, kind, f"{content}only in a streamed block"


def _conditional(field: IfThenElse, path: str) -> Iterator[Row]:
    for size, inner, kind, content in rows(field.thensubcon, path):
        yield size, inner, kind, "; ".join(filter(None, [content, "only if anything follows"]))


def _counted(field: Counted, path: str) -> Iterator[Row]:
    if isinstance(field.count, Construct):
        ((size, _, kind, _),) = rows(field.count, path)
        yield size, f"{path}.count", kind, "items that follow"
    yield from rows(field.subcon, f"{path}[]")


def _tagged(field: Tagged, path: str) -> Iterator[Row]:
    place = path.rpartition(".")[0]
    order = "in this order" if field.in_order else "in any order"
    for tag, (name, part) in field.fields.items():
        inner = f"{place}.{name}" if place else name
        yield "1", f"{inner}.tag", "tag", f"`{chr(tag)}`; optional, {order}"
        yield from rows(part, inner)


def _chosen(field: Chosen, path: str) -> Iterator[Row]:
    meanings = {pgoutput.NULL: "NULL", pgoutput.UNCHANGED_CELL: "not sent: a TOAST value that did not change"}
    empty = [f"`{chr(tag)}` {meanings[tag]}" for tag, part in field.fields.items() if part is None]
    filled = [f"`{chr(tag)}` a value follows" for tag, part in field.fields.items() if part is not None]
    yield "1", f"{path}.tag", "tag", ", ".join([*empty, *filled])
    for tag, part in field.fields.items():
        if part is not None:
            for size, inner, kind, content in rows(part, path):
                yield size, inner, kind, "; ".join(filter(None, [content, f"after `{chr(tag)}`"]))


def _images(field: pgoutput.TaggedImages, path: str) -> Iterator[Row]:
    for tags, required in field.steps:
        shown = " or ".join(f"`{chr(tag)}` {_image(tag)}" for tag in tags)
        name = pgoutput.IMAGES[tags[0]]
        yield "1", f"{name}.tag", "tag", shown if required else f"{shown}; optional"
        yield "", name, "tuple", "see below"


def _image(tag: int) -> str:
    return {"key": "the old key", "full": "the whole old row"}.get(pgoutput.OLD_KINDS.get(tag, ""), "the new row")


READERS: Mapping[type, Callable[[Any, str], Iterator[Row]]] = {
    Chosen: _chosen,
    Coded: _coded,
    Counted: _counted,
    FormatField: _number,
    IfThenElse: _conditional,
    pgoutput.TaggedImages: _images,
    Sized: _sized,
    Struct: _struct,
    Tagged: _tagged,
    Text: _text,
    Time: _time,
    Told: _told,
    ZeroEnded: _zero_ended,
}
"""What makes the rows of each kind of field."""


def table(declaration: Construct) -> str:
    """Returns the table of a declaration."""
    lines = [
        " | ".join(["", size, f"`{path}`", kind, content, ""]).strip()
        for size, path, kind, content in rows(declaration)
    ]
    return "\n".join([*HEAD, *(re.sub(r" +\|", " |", line) for line in lines)])


def sections() -> dict[str, str]:
    """Returns, by the page that has it, the text that is made from the declarations."""
    return {
        "formats/gaussdb-binary.md": "\n\n".join(_gaussdb_binary()),
        "formats/pgoutput.md": "\n\n".join(_pgoutput()),
        **{f"formats/{name}.md": tables for name, tables in text_sections()},
    }


def _gaussdb_binary() -> Iterator[str]:
    kinds: dict[int, list[int]] = {}
    for byte, (_, declaration) in gaussdb_binary.RECORDS.items():
        kinds.setdefault(id(declaration), []).append(byte)
    for bytes_ in kinds.values():
        _, declaration = gaussdb_binary.RECORDS[bytes_[0]]
        names = ", ".join(f"`{chr(byte)}` {gaussdb_binary.RECORDS[byte][0].kind}" for byte in bytes_)
        yield f"### {names}"
        yield table(declaration)


def _pgoutput() -> Iterator[str]:
    for dialect, records in pgoutput.RECORDS.items():
        for byte, (event, declaration) in records.items():
            if dialect != "postgresql" and pgoutput.RECORDS["postgresql"].get(byte) == (event, declaration):
                continue
            of = "" if dialect == "postgresql" else ", openGauss"
            envelope = " (in the envelope)" if byte == copy_data.KEEPALIVE else ""
            yield f"### `{chr(byte)}` {event.__name__}{of}{envelope}"
            yield table(declaration) if declaration.subcons else "No fields."
    yield "### A tuple"
    yield table(pgoutput.TUPLE)


BEGIN, END = "<!-- printed by python -m tools.site.byte_tables -->", "<!-- to here -->"


def with_section(page: str, section: str) -> str:
    """Returns a page with its printed section."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{section}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    for name, section in sections().items():
        path = DOCS / name
        path.write_text(with_section(path.read_text(encoding="utf-8"), section), encoding="utf-8")
