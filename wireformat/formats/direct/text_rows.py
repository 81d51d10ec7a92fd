"""The layouts of rows of the text formats: JSON objects, lines of columns, SQL statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...events import LITERAL_TYPES, UNCHANGED, Delete, Insert, RowChange, TupleData
from ...grammar.json_text import KEYS, SIDES, write_string
from ...grammar.literals import WRITERS, LiteralWriter
from ...grammar.names import OPENGAUSS, Dialect, write_name, write_relation, write_type
from ...grammar.sql_text import AND, DELETE, END, INSERT, VALUES, WHERE
from ...grammar.tuple_text import MARK_OF_CHANGE, NEW_TUPLE, NO_TUPLE, OLD_KEY, TABLE, check_images, write_unquoted
from .layouts import Part, RowParts, Value, ValueWriter, image_cells

WriteTable = Callable[[str, str, str], bytes]
"""Schema and table in an encoding to the bytes between `table ` and the mark of the kind."""


def quoted_rows(dialect: Dialect) -> RowParts:
    """Returns the parts of the rows of formats whose lines name a table in quotes."""

    def write_table(schema: str, table: str, encoding: str) -> bytes:
        return write_relation(schema, table, encoding, dialect) + b":"

    return _line_rows(write_table, dialect)


def unquoted_rows() -> RowParts:
    """Returns the parts of the rows of gaussdb-text."""
    return _line_rows(write_unquoted, OPENGAUSS)


def _line_rows(write_table: WriteTable, dialect: Dialect) -> RowParts:
    def parts(event: RowChange, encoding: str) -> Iterator[Part]:
        check_images(event)
        yield TABLE + write_table(event.table_schema, event.table_name, encoding) + MARK_OF_CHANGE[type(event)]
        if isinstance(event, Delete):
            yield from columns(event.old, encoding)
        else:
            if event.old is not None:
                yield OLD_KEY
                yield from columns(event.old, encoding)
                yield NEW_TUPLE
            yield from columns(event.new, encoding)

    def columns(image: TupleData | None, encoding: str) -> Iterator[Part]:
        if image is None:
            yield NO_TUPLE
            return
        for name, type in image_cells(image):
            yield (
                b" " + write_name(name, "name", encoding, dialect) + b"[" + write_type(type, encoding, dialect) + b"]:"
            )
            yield _literal_writer(type, encoding, dialect.literals)

    return parts


def json_rows(event: RowChange, encoding: str) -> Iterator[Part]:
    """The parts of the rows of gaussdb-json and mppdb-json; see RowParts."""
    table, kind, *_ = KEYS
    yield b'{"%s":' % table.encode() + write_string(write_relation(event.table_schema, event.table_name, encoding))
    yield b',"%s":' % kind.encode() + write_string(event.kind.encode())
    for side, keys in SIDES.items():
        image: TupleData | None = getattr(event, side)
        if image is not None and not image.names:
            raise ValueError(side)
        cells = [*image_cells(image or TupleData())]
        names, types, values = (b',"%s":[' % key.encode() for key in keys)
        yield names + b",".join(write_string(write_name(name, "name", encoding)) for name, _ in cells) + b"]"
        yield types + b",".join(write_string(write_type(type, encoding)) for _, type in cells) + b"]" + values
        for index, (_, type) in enumerate(cells):
            if index:
                yield b","
            yield _string_writer(type, encoding)
        yield b"]"
    yield b"}"


def sql_rows(event: RowChange, encoding: str) -> Iterator[Part]:
    """The parts of the rows of sql-decoding; see RowParts."""
    relation = write_relation(event.table_schema, event.table_name, encoding)
    check_images(event)
    if not isinstance(event, Insert):
        yield DELETE + relation + WHERE
        yield from _statement_cells(event.old, encoding, AND, lambda name: write_name(name, "name", encoding) + b" = ")
        yield END
    if not isinstance(event, Delete):
        new = event.new
        if new is not None and new.names != tuple(f"${place}" for place in range(1, len(new.names) + 1)):
            raise ValueError("new")
        brackets = (b"(", b")") if new is not None and new.names else (b"", b"")
        yield INSERT + relation + VALUES + brackets[0]
        yield from _statement_cells(new, encoding, b", ", lambda name: b"")
        yield brackets[1] + END


def _statement_cells(
    image: TupleData | None, encoding: str, between: bytes, head: Callable[[str], bytes]
) -> Iterator[Part]:
    if image is None:
        yield NO_TUPLE
        return
    for index, (name, type) in enumerate(image_cells(image)):
        yield (between if index else b"") + head(name)
        yield _form_writer(type, encoding)


def _literal_writer(type: str, encoding: str, writers: Mapping[str, LiteralWriter] = WRITERS) -> ValueWriter:
    encode = str.encode
    form = writers.get(type)

    def write(value: Value) -> bytes:
        if value is None:
            return b"null"
        if value is UNCHANGED:
            return b"unchanged-toast-datum"
        return form(encode(value, encoding), type)  # type: ignore[arg-type,misc]  # a TypeError is for the declaration

    def write_text(value: Value) -> bytes:
        if value is None:
            return b"null"
        if value is UNCHANGED:
            return b"unchanged-toast-datum"
        return b"'" + encode(value, encoding).replace(b"'", b"''") + b"'"  # type: ignore[arg-type]

    return write_text if form is None else write


def _string_writer(type: str, encoding: str) -> ValueWriter:
    """A literal inside a JSON string; numbers, booleans and bits need no escape."""
    literal = _literal_writer(type, encoding)
    needs_escapes = type not in WRITERS

    def write(value: Value) -> bytes:
        if value is UNCHANGED:
            raise ValueError(type)
        return write_string(literal(value)) if needs_escapes else b'"' + literal(value) + b'"'

    return write


def _form_writer(type: str, encoding: str) -> ValueWriter:
    """A literal of one form. Those of NULL and of what was not sent are written for one value only, others never."""
    if type not in _FORMS:
        raise ValueError(type)
    literal, special = _literal_writer(type, encoding), _FORMS[type]

    def write(value: Value) -> bytes:
        if value is not special and (special != "" or value is None or value is UNCHANGED):
            raise ValueError(type)
        return literal(value)

    return write


_FORMS: dict[str, Value] = {
    **{type: "" for type in WRITERS if type.startswith(LITERAL_TYPES)},
    LITERAL_TYPES + "string": "",
    LITERAL_TYPES + "null": None,
    LITERAL_TYPES + "unchanged": UNCHANGED,
}
"""Each form of a literal, and the only value that has it; "" where every text may have it."""
