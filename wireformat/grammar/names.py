"""Names of relations, columns and types, as the server quotes them, and the dialects of the two families of servers.

    name      = [a-z_][a-z0-9_]*  |  '"' ( any but '"' | '""' )* '"'
    relation  = name '.' name
    type      = its SQL name: plain words with blanks and dots, parts in double quotes, and '[]' for arrays

Source: PostgreSQL's quote_identifier and format_type; openGauss's are the same but for their keywords.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import EncodeError, encoded
from ..identifiers import KEYWORDS, PLAIN_NAME, POSTGRES_KEYWORDS, quote_identifier
from .cursor import Cursor
from .literals import WRITERS, LiteralWriter


class Dialect(NamedTuple):
    """How one family writes names, types and values; reading takes both.

    keywords    names that are quoted though they are plain
    unprinted   types that the server prints under another name
    literals    how values of a type are written; all others are strings
    """

    keywords: frozenset[str]
    unprinted: frozenset[str]
    literals: Mapping[str, LiteralWriter]


OPENGAUSS = Dialect(KEYWORDS, frozenset({"clob"}), WRITERS)
POSTGRES = Dialect(
    POSTGRES_KEYWORDS, frozenset(), {type: writer for type, writer in WRITERS.items() if type != "tinyint"}
)
"""A type tinyint is a user's there, and so are its values strings."""


TYPE_WORDS = "[A-Za-z0-9_. ]*"
"""What the name of a type consists of outside of quotes and brackets: a regular expression."""

_PLAIN, _TYPE_WORDS = (re.compile(pattern.encode()) for pattern in (PLAIN_NAME, TYPE_WORDS))
_BARE = re.compile(rb'[^".]+')
_NAME_WORDS = "a name: plain, or in double quotes"
_TYPE = re.compile(r'(?a)(?:[\w. ]|\[\]|"(?:[^"]|"")*")+')


def read_name(cursor: Cursor, path: str) -> str:
    """One name, plain or quoted; raises DecodeError."""
    start = cursor.at
    if cursor.sees(b'"'):
        name = cursor.text(cursor.quoted(b'"', path), start + 1, path)
    else:
        match = _PLAIN.match(cursor.data, start, cursor.stop)
        if match is None:
            cursor.fail(_NAME_WORDS, path)
        cursor.at = match.end()
        name = match[0].decode("ascii")
    if cursor.trace is not None:
        cursor.note(start, path, _NAME_WORDS, name)
    return name


def read_relation(cursor: Cursor) -> tuple[str, str]:
    """`schema.table`; raises DecodeError."""
    schema = read_name(cursor, "table_schema")
    cursor.expect(b".", "table_name")
    return schema, read_name(cursor, "table_name")


def unquoted(cursor: Cursor) -> str:
    """Returns all that follows as a name, quoted or plain; raises DecodeError with the path `name`."""
    if not cursor.sees(b'"'):
        return cursor.rest("name")
    start = cursor.at + 1
    raw = cursor.quoted(b'"', "name")
    cursor.expect_end("the end of the name, or doubled quotes inside it", "name")
    return cursor.text(raw, start, "name")


def split_relation(cursor: Cursor) -> tuple[str, str]:
    """`schema.table` that all that follows is; parts without quotes may hold anything else. Raises DecodeError."""
    names = []
    for path, end in (("table_schema", b"."), ("table_name", b"")):
        start = cursor.at
        if cursor.sees(b'"'):
            names.append(cursor.text(cursor.quoted(b'"', path), start + 1, path))
        else:
            match = _BARE.match(cursor.data, start, cursor.stop)
            if match is None:
                cursor.fail("schema.table, each in double quotes where needed", path)
            cursor.at = match.end()
            names.append(cursor.text(match[0], start, path))
        if end:
            cursor.expect(end, "table_name")
    cursor.expect_end("the end of the table's name", "table_name")
    return names[0], names[1]


def read_type(cursor: Cursor) -> str:
    """The name of a type between brackets; raises DecodeError with the path `type`."""
    cursor.expect(b"[", "type")
    start = cursor.at
    while True:
        match = _TYPE_WORDS.match(cursor.data, cursor.at, cursor.stop)
        cursor.at = match.end() if match else cursor.stop
        if cursor.sees(b'"'):
            cursor.quoted(b'"', "type")
        elif not cursor.skip(b"[]"):
            break
    end = cursor.at
    if end == start or not cursor.skip(b"]"):
        cursor.fail("the name of a type and ']'", "type", at=start if cursor.ended else end)
    text = cursor.text(cursor.data[start:end], start, "type")
    if cursor.trace is not None:
        cursor.trace.note(start, end, "type", "the name of a type", text)
        cursor.note(end, "", repr("]"))
    return text


def write_name(name: str, path: str, encoding: str, dialect: Dialect = OPENGAUSS) -> bytes:
    """A name with quotes where needed; raises EncodeError."""
    return encoded(quote_identifier(_checked(name, path), dialect.keywords), path, encoding)


def write_relation(schema: str, table: str, encoding: str, dialect: Dialect = OPENGAUSS) -> bytes:
    """`schema.table`; raises EncodeError."""
    names = (schema, "table_schema"), (table, "table_name")
    return b".".join(write_name(name, path, encoding, dialect) for name, path in names)


def write_type(type: str, encoding: str, dialect: Dialect = OPENGAUSS) -> bytes:
    """The name of a type, as the text formats print it; raises EncodeError for what is the name of none."""
    if not _TYPE.fullmatch(_checked(type, "type")):
        raise EncodeError(f"type: expected the SQL name of a type, got {type!r}")
    if type in dialect.unprinted:
        raise EncodeError(f"type: the text formats name {type} text")
    return encoded(type, "type", encoding)


def _checked(text: object, path: str) -> str:
    if not isinstance(text, str):
        raise EncodeError(f"{path}: expected a str, got {type(text).__name__}")
    return text
