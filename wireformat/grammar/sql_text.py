"""Row changes of sql_decoding: statements.

    insert  = 'insert into ' relation ' values ' ( values | ' (no-tuple-data)' | '' ) ';'
    delete  = 'delete from ' relation ' where ' ( columns | ' (no-tuple-data)' | '' ) ';'
    update  = delete insert                                                               one record
    values  = '(' literal ( ', ' literal )* [ ', ' ] ')'
    columns = name ' = ' literal ( ' and ' name ' = ' literal )*

An INSERT names no columns: they are `$1`, `$2`, … Nothing names types: the form of each literal takes their place,
as `?number`. The comma at the end is what dropped columns leave. Source: openGauss's sql_decoding.
"""

from __future__ import annotations

from ..errors import BadValue, DecodeError, EncodeError
from ..events import LITERAL_TYPES, Delete, Insert, RowChange, TupleData, Unchanged, Update
from .cursor import Cursor
from .literals import WRITERS, Value, read_literal, write_literal
from .names import read_name, read_relation, write_name, write_relation
from .tuple_text import NO_TUPLE, check_images, write_cells

INSERT, DELETE = b"insert into ", b"delete from "
VALUES, WHERE, AND, COMMA, EQUALS = b" values ", b" where ", b" and ", b", ", b" = "
END = b";"


def read_insert(cursor: Cursor, lsn: int | None) -> Insert:
    """The event of a record that is an INSERT; raises DecodeError."""
    schema, table, new = _insert(cursor)
    try:
        _end(cursor)
    except DecodeError as error:
        raise error.in_table(schema, table) from None
    return Insert(lsn=lsn, table_schema=schema, table_name=table, new=new)


def read_delete(cursor: Cursor, lsn: int | None) -> RowChange:
    """The event of a record that is a DELETE, or an UPDATE if an INSERT follows; raises DecodeError."""
    cursor.expect(DELETE, "record")
    schema, table = read_relation(cursor)
    cursor.expect(WHERE, "old")
    try:
        old = _tuple(cursor, "old")
        if cursor.ended:
            return Delete(lsn=lsn, table_schema=schema, table_name=table, old=old)
        start = cursor.at
        *names, new = _insert(cursor)
        if names != [schema, table]:
            raise BadValue("an INSERT into the same table", "another table", **cursor.where("new", start))
        _end(cursor)
    except DecodeError as error:
        raise error.in_table(schema, table) from None
    return Update(lsn=lsn, table_schema=schema, table_name=table, new=new, old=old)


def write_change(event: RowChange, encoding: str) -> bytes:
    """The statements of a row change; raises EncodeError."""
    relation = write_relation(event.table_schema, event.table_name, encoding)
    check_images(event)
    written = b""
    if not isinstance(event, Insert):
        written += DELETE + relation + WHERE + _written_where(event.old, encoding) + END
    if not isinstance(event, Delete):
        written += INSERT + relation + VALUES + _written_values(event.new, encoding) + END
    return written


def form_of(value: Value, type: str) -> str:
    """Returns what takes the place of a type for a value of this type."""
    if value is None or isinstance(value, Unchanged):
        return LITERAL_TYPES + ("null" if value is None else "unchanged")
    writer = WRITERS.get(type)
    return next((name for name, form in WRITERS.items() if form is writer and name[0] == LITERAL_TYPES), "?string")


def _insert(cursor: Cursor) -> tuple[str, str, TupleData | None]:
    cursor.expect(INSERT, "record")
    schema, table = read_relation(cursor)
    cursor.expect(VALUES, "new")
    try:
        return schema, table, _tuple(cursor, "new")
    except DecodeError as error:
        raise error.in_table(schema, table) from None


def _tuple(cursor: Cursor, side: str) -> TupleData | None:
    """The tuple of a statement, to its semicolon."""
    image: TupleData | None = TupleData()
    start = cursor.at
    if cursor.skip(NO_TUPLE):
        image = None
    elif not cursor.sees(END):
        image = _cells(cursor, side)
    if cursor.trace is not None:
        cursor.trace.words(start, side)
    cursor.expect(END, side)
    return image


def _cells(cursor: Cursor, side: str) -> TupleData:
    is_new = side == "new"
    names: list[str] = []
    values: list[Value] = []
    forms: list[str] = []
    if is_new:
        cursor.expect(b"(", side)
    try:
        while True:
            start = cursor.at
            if is_new:
                names.append(f"${len(names) + 1}")
            else:
                names.append(read_name(cursor, "name"))
                cursor.expect(EQUALS, "value")
            value, form = read_literal(cursor)
            values.append(value)
            forms.append(LITERAL_TYPES + form)
            if cursor.trace is not None:
                cursor.trace.within(start, f"{side}.cells[{len(values) - 1}]")
            if not cursor.skip(COMMA if is_new else AND) or (is_new and cursor.sees(b")")):
                break
    except DecodeError as error:
        raise error.add(path=f"{side}.cells[{len(values)}].{error.path}") from None
    if is_new:
        cursor.expect(b")", side)
    return TupleData(tuple(names), tuple(values), tuple(forms))


def _end(cursor: Cursor) -> None:
    cursor.expect_end("the end of the record", "end")


def _written_values(image: TupleData | None, encoding: str) -> bytes:
    if image is None or not image.names:
        return NO_TUPLE if image is None else b""
    if image.names != tuple(f"${place}" for place in range(1, len(image.names) + 1)):
        raise EncodeError("new: an INSERT names no columns here; expected $1, $2 and so on")
    return b"(" + COMMA.join(write_cells(image, "new", lambda _, value, type: _literal(value, type, encoding))) + b")"


def _written_where(image: TupleData | None, encoding: str) -> bytes:
    if image is None:
        return NO_TUPLE

    def cell(name: str, value: Value, type: str) -> bytes:
        return write_name(name, "name", encoding) + EQUALS + _literal(value, type, encoding)

    return AND.join(write_cells(image, "old", cell))


def _literal(value: Value, type: str, encoding: str) -> bytes:
    form = form_of(value, type)
    if type != form:
        raise EncodeError(f"type: nothing names types here; expected the form of the literal, {form}")
    return write_literal(value, type, encoding)
