"""The records of the text formats as Markdown tables, from their grammars and framing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from wireformat.events import ROW_CHANGES, Delete, Insert, Update
from wireformat.formats.registry import find_format
from wireformat.formats.text_format import TextFormat
from wireformat.framing import text_batch
from wireformat.framing.frames import Part, layout
from wireformat.grammar.json_text import ARRAYS, KEYS, SIDES
from wireformat.grammar.lines import Line, LinePart
from wireformat.grammar.table_text import FLAGS
from wireformat.grammar.tuple_text import CHANGE_OF_MARK, NEW_TUPLE, NO_TUPLE, OLD_KEY

PAGES = {
    "gaussdb-json": ("batch", "lines", "json"),
    "gaussdb-text": ("lines", "rows"),
    "mppdb-json": ("lines", "truncate"),
    "opengauss-test-decoding": ("lines", "rows", "truncate"),
    "sql-decoding": ("lines", "truncate"),
    "test-decoding": ("lines", "rows", "truncate"),
}
"""What each page shows; rows in JSON are explained on one page, to which others link."""

LINE_HEAD = ["| record begins with | then | field | value |", "|---|---|---|---|"]


def text_sections() -> Iterator[tuple[str, str]]:
    """Yields the name of a format and the tables of its page."""
    for name, shown in PAGES.items():
        format = find_format(name)
        assert isinstance(format, TextFormat)
        made: dict[str, Callable[[], str]] = {
            "batch": _batch,
            "lines": partial(_lines, format.lines),
            "rows": _rows,
            "json": _json,
            "truncate": _truncate,
        }
        yield name, "\n\n".join(made[part]() for part in shown)


def code(text: bytes) -> str:
    """Some bytes of a grammar as code; a blank at an end is shown."""
    return f"`{text.decode('ascii')}`".replace("` ", "`␣").replace(" `", "␣`").replace("|", "\\|")


def _lines(lines: Iterable[Line]) -> str:
    rows = [*LINE_HEAD]
    for line in lines:
        begin = f"{code(line.word)} {line.event.__name__}"
        if not line.parts:
            rows.append(f"| {begin} | | | |")
        for part in line.parts:
            rows.append(f"| {begin} | {_marks(part)} | `{part.field}` | {_value(part)} |")
            begin = ""
    return "\n".join(["### Lines", "", *(row.replace("|  |", "| |") for row in rows)])


def _marks(part: LinePart) -> str:
    before = " or ".join(code(mark) for mark in (part.before, *part.also))
    return before + (f" … {code(part.after)}" if part.after else "")


def _value(part: LinePart) -> str:
    return part.value.words + ("" if part.required else "; optional")


def _batch() -> str:
    rows = ["### A batch", "", "| bytes | field | content |", "|---|---|---|"]
    rows += [_framed(part) for part in text_batch.HEAD]
    rows += ["| length - 8 | `text` | a line or a row change |"]
    rows += [_framed(part) for part in text_batch.TAIL]
    return "\n".join(rows)


def _framed(part: Part) -> str:
    return f"| {layout((part,)).size} | `{part.name}` | {part.rule} |"


def _rows() -> str:
    columns = "columns"
    after = {
        Insert: f"{columns} of the new row",
        Update: f"{code(OLD_KEY)} {columns} of the old row {code(NEW_TUPLE)}, optional; then {columns} of the new row",
        Delete: f"{columns} of the old row",
    }
    rows = ["### Row changes by mark", "", "| mark after the table | event | then |", "|---|---|---|"]
    rows += [f"| {code(mark)} | {event.__name__} | {after[event]} |" for mark, event in CHANGE_OF_MARK.items()]
    return "\n".join([*rows, "", f"In place of columns, {code(NO_TUPLE)} means no row."])


def _json() -> str:
    whose = {key: side for side, keys in SIDES.items() for key in keys}
    what = dict(zip(ARRAYS, ("names", "types", "values") * len(SIDES), strict=True))
    said = {"table_name": "schema and table", "op_type": " or ".join(f"`{kind}`" for kind in ROW_CHANGES)}
    rows = ["### Keys of a row change", "", "| key | value |", "|---|---|"]
    rows += [f"| `{key}` | {said.get(key) or f'array: {what[key]} of the {whose[key]} row'} |" for key in KEYS]
    return "\n".join(rows)


def _truncate() -> str:
    rows = ["### Flags of TRUNCATE", "", "| word | field |", "|---|---|"]
    return "\n".join([*rows, *(f"| {code(word)} | `{name}` |" for name, word in FLAGS.items())])
