"""DDL in the serial formats: openGauss's two lines, and GaussDB's objects.

    prefix: p, lsn: 21, relid 3, cmdtype: w, size: 5, content: …[\\ndecode to: sql, [owner o]]       mppdb_decoding
    message: prefix p, relid 3, cmdtype: w, sz: 5 content: …[\\ndecode to : sql, [owner o]]          the others
    {"TDDL": "sql"}   {"JDDL": {"fmt": …}}                                                          GaussDB

The size counts the content in the server's encoding and a zero byte that is not sent. Where the text came in another
encoding it is no longer true; the content then ends at the line feed before `decode to`. Source: openGauss's plugins;
GaussDB document "Logical Decoding Options".
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..errors import BadValue, EncodeError, encoded
from ..events import Ddl
from .cursor import Cursor
from .json_text import read_string, read_within, skip_space, write_string
from .lines import TEXT, UNSIGNED, UNSIGNED_32, LinePart, read_parts, write_parts


class DdlLine(NamedTuple):
    """One of the two lines.

    head    how it begins
    parts   up to the content
    content the mark of the content
    sql     the mark of the statement
    """

    head: bytes
    parts: tuple[LinePart, ...]
    content: bytes
    sql: bytes


_RELID = LinePart(b", relid ", "relid", UNSIGNED_32, required=True)
_CMDTYPE = LinePart(b", cmdtype: ", "cmdtype", TEXT, required=True)

MPPDB_DDL = DdlLine(
    b"prefix: ",
    (
        LinePart(b"prefix: ", "prefix", TEXT, required=True),
        LinePart(b", lsn: ", "lsn", UNSIGNED, required=True),
        _RELID,
        _CMDTYPE,
        LinePart(b", size: ", "size", UNSIGNED, required=True),
    ),
    b", content: ",
    b"\ndecode to: ",
)
MESSAGE_DDL = DdlLine(
    b"message: ",
    (
        LinePart(b"message: prefix ", "prefix", TEXT, required=True),
        _RELID,
        _CMDTYPE,
        LinePart(b", sz: ", "size", UNSIGNED, required=True),
    ),
    b" content: ",
    b"\ndecode to : ",
)
OWNER, OWNER_END = b", [owner ", b"]"

OBJECTS = {b'{"TDDL"': "sql", b'{"JDDL"': "content"}
"""How GaussDB's objects begin, and the field that they hold."""


def read_ddl_line(cursor: Cursor, line: DdlLine, lsn: int | None) -> Ddl:
    """Returns the event of one of openGauss's lines. An LSN in it replaces that of the frame. Raises DecodeError."""
    fields = {"lsn": lsn} | read_parts(cursor, line.parts)
    cursor.expect(line.content, "content")
    data, start, stop = cursor.data, cursor.at, cursor.stop
    end = start + fields["size"] - 1
    if end != stop and not data.startswith(line.sql, end, stop):
        end = data.find(line.sql, start, stop)
        end = stop if end < 0 else end
    fields["content"] = cursor.text(data[start:end], start, "content")
    if end < stop:
        sql = end + len(line.sql)
        cursor.at = end
        cursor.skip(line.sql)
        owner = data.rfind(OWNER, sql, stop)
        name = end = stop
        if owner >= 0 and data.endswith(OWNER_END, owner, stop):
            name, end, stop = owner + len(OWNER), stop - len(OWNER_END), owner
        fields["sql"] = cursor.text(data[sql:stop], sql, "sql")
        if stop < name:
            cursor.at = stop
            cursor.skip(OWNER)
            fields["owner"] = cursor.text(data[name:end], name, "owner")
            cursor.at = end
            cursor.skip(OWNER_END)
    return Ddl(**fields)


def read_ddl_object(cursor: Cursor, lsn: int | None) -> Ddl:
    """Returns the event of one of GaussDB's objects; raises DecodeError."""
    cursor.expect(b"{", "record")
    key, _ = read_string(cursor, "key")
    skip_space(cursor)
    cursor.expect(b":", "record")
    skip_space(cursor)
    if key == b"TDDL":
        sql = read_within(cursor, read_string(cursor, "sql"), lambda inner: inner.rest("sql"))
        skip_space(cursor)
        cursor.expect(b"}", "record")
        cursor.expect_end("the end of the record", "end")
        return Ddl(lsn=lsn, sql=sql)
    start = cursor.at
    if not cursor.sees(b"{"):
        cursor.fail("a template, an object", "content", kind=BadValue)
    whole = cursor.data[start : cursor.stop].rstrip(b" \t\n\r")
    if not whole.endswith(b"}"):
        cursor.fail("'}' to close the object", "record", at=cursor.stop)
    content = whole[:-1].rstrip(b" \t\n\r")
    _check_json(content, start)
    text = cursor.text(content, start, "content")
    cursor.at = start + len(content)
    skip_space(cursor)
    cursor.expect(b"}", "record")
    skip_space(cursor)
    return Ddl(lsn=lsn, content=text)


def write_ddl_line(event: Ddl, line: DdlLine, encoding: str) -> bytes:
    """Returns the record of a DDL; without a prefix it is one of GaussDB's objects. Raises EncodeError.

    The size is computed, because it counts bytes in this encoding.
    """
    if event.prefix is None:
        return _write_object(event, encoding)
    if event.content is None:
        raise EncodeError("content: expected the words or the template")
    if event.sql is None and event.owner is not None:
        raise EncodeError("owner: it follows the statement, and there is none")
    content = encoded(event.content, "content", encoding)
    fields: dict[str, Any] = {part.field: getattr(event, part.field) for part in line.parts}
    written = write_parts(line.parts, fields | {"size": len(content) + 1}, encoding) + line.content + content
    if event.sql is not None:
        written += line.sql + encoded(event.sql, "sql", encoding)
    if event.owner is not None:
        written += OWNER + encoded(event.owner, "owner", encoding) + OWNER_END
    return written


def _write_object(event: Ddl, encoding: str) -> bytes:
    for field in ("relid", "cmdtype", "size", "owner"):
        if getattr(event, field) is not None:
            raise EncodeError(f"{field}: without a prefix there is no place for it")
    if (event.sql is None) == (event.content is None):
        raise EncodeError("sql: without a prefix, expected either the statement or a template")
    if event.sql is not None:
        return b'{"TDDL": ' + write_string(encoded(event.sql, "sql", encoding)) + b"}"
    return b'{"JDDL": ' + encoded(event.content, "content", encoding) + b"}"


def _check_json(content: bytes, start: int) -> None:
    """Raises BadValue if the bytes are not a JSON object. In latin-1 a byte is a character, so positions are right."""
    text = content.decode("latin-1")
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise BadValue(
            "a template in JSON", "something else", message_offset=start, field_offset=error.pos, path="content"
        ) from None
    except RecursionError:
        raise BadValue(
            "a template in JSON", "more levels than can be read", message_offset=start, path="content"
        ) from None
