"""One event as a line, in the words of the openGauss client.

The client has words for BEGIN, COMMIT and row changes of the binary style, and none for a user name; all others follow
its manner, but for two-phase commit, streamed blocks and messages, which have the words of PostgreSQL's test_decoding.
It escapes nothing and prints NULL as "NULL". Source: formats/gaussdb, "Binary records"; formats/test_decoding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from ..events import (
    Abort,
    Begin,
    Commit,
    CommitPrepared,
    Corrupt,
    Ddl,
    Delete,
    Event,
    Heartbeat,
    Insert,
    Message,
    Origin,
    Prepare,
    Relation,
    RollbackPrepared,
    StreamAbort,
    StreamChange,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Truncate,
    TupleData,
    Type,
    Unchanged,
    Unknown,
    Update,
)
from ..identifiers import quote_identifier
from ..lsn import lsn_text
from ..pgtypes import type_oid


class Word(NamedTuple):
    """A part of the line: the text before a field of the event, and how the field is printed."""

    before: str
    field: str
    text: Callable[[Any], str] = str


def client_line(event: Event) -> str:
    """The line of one event, without its line feed. A field that is None is left out with the text before it."""
    head, words = LINES[type(event)]
    parts = [f"current_lsn: {lsn_text(event.lsn)} " if event.lsn is not None else "", head]
    for before, field, text in words:
        value = getattr(event, field)
        if value is not None:
            parts += (before, text(value))
    return "".join(parts)


def _image(image: TupleData) -> str:
    heads = _cell_heads(image.names, image.types)
    cells = [f"{head}{_value(value)}" for head, value in zip(heads, image.values, strict=True)]
    return "{" + ", ".join(cells) + "}"


def _value(value: str | Unchanged | None) -> str:
    if isinstance(value, Unchanged):
        return "unchanged-toast-datum"
    return f'"{"NULL" if value is None else value}"'


@lru_cache(maxsize=256)
def _cell_heads(names: tuple[str, ...], types: tuple[str, ...]) -> list[str]:
    """Returns the text before each value; a stream has few tables, so few of these."""
    return [f"{quote_identifier(name)}[typid = {type_oid(type)}]: " for name, type in zip(names, types, strict=True)]


def _tables(tables: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{schema}.{table}" for schema, table in tables)


def _flag(word: str) -> Callable[[bool], str]:
    return lambda given: word if given else ""


def _bytes(raw: bytes) -> str:
    return rf"\x{raw.hex()}"


def _content(content: str | bytes) -> str:
    return content if isinstance(content, str) else _bytes(content)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote_identifier, names))


def _numbers(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


_ORIGIN = Word(" origin_id: ", "origin")
_USERNAME = Word(" username: ", "username")
_COMMIT_TIME = Word(" commit_time: ", "commit_time")
_COMMIT_LSN = Word(" commit_lsn: ", "commit_lsn", lsn_text)
_END_LSN = Word(" end_lsn: ", "end_lsn", lsn_text)
_XID = Word(" xid: ", "xid")
_TABLE = (Word("", "table_schema"), Word(".", "table_name"))
_ROW_CHANGE = (
    *_TABLE,
    Word(" new_tuple: ", "new", _image),
    Word(" old_value: ", "old", _image),
    _XID,
    Word(" old_is: ", "old_kind"),
    Word("", "binary", lambda names: f" binary: {_names(names)}" if names else ""),
)

# The words of test_decoding.
_STREAMED = Word(" TXN ", "xid")
_GID = Word(" ", "gid", _literal)
_TXID = Word(", txid ", "xid")
_AT = Word("", "commit_time", " (at {})".format)
_PREPARED_AT = Word("", "prepare_time", " (at {})".format)

LINES: dict[type[Event], tuple[str, tuple[Word, ...]]] = {
    Begin: (
        "BEGIN",
        (
            Word(" CSN: ", "csn"),
            Word(" first_lsn: ", "first_lsn", lsn_text),
            _XID,
            _COMMIT_TIME,
            _ORIGIN,
            _USERNAME,
            _COMMIT_LSN,
            _END_LSN,
            Word(" gid: ", "gid", _literal),
            Word(" prepare_time: ", "prepare_time"),
        ),
    ),
    Commit: (
        "COMMIT ",
        (Word("xid: ", "xid"), _COMMIT_TIME, _ORIGIN, _USERNAME, Word(" CSN: ", "csn"), _COMMIT_LSN, _END_LSN),
    ),
    Abort: ("ABORT ", (Word("xid: ", "xid"), _COMMIT_TIME)),
    Prepare: (
        "PREPARE ",
        (Word("xid: ", "xid"), _COMMIT_TIME, Word(" gid: ", "gid", _literal), _PREPARED_AT, _END_LSN),
    ),
    CommitPrepared: ("COMMIT PREPARED", (_GID, _TXID, _AT, _COMMIT_LSN, _END_LSN)),
    RollbackPrepared: (
        "ROLLBACK PREPARED",
        (_GID, _TXID, _AT, Word(" prepare_time: ", "prepare_time"), _END_LSN),
    ),
    StreamStart: (
        "opening a streamed block for transaction",
        (_STREAMED, Word("", "first_segment", _flag(", its first"))),
    ),
    StreamStop: ("closing a streamed block for transaction", (_STREAMED,)),
    StreamChange: ("streaming change for", (_STREAMED,)),
    StreamAbort: ("aborting streamed (sub)transaction", (_STREAMED, Word(" subxid: ", "subxid"), _AT)),
    StreamCommit: ("committing streamed transaction", (_STREAMED, _AT, _COMMIT_LSN, _END_LSN)),
    StreamPrepare: ("preparing streamed transaction", (_GID, _TXID, _PREPARED_AT, _END_LSN)),
    Message: (
        "message:",
        (
            Word(" transactional: ", "transactional", lambda given: str(int(given))),
            Word(" prefix: ", "prefix"),
            Word(", sz: ", "size"),
            _XID,
            Word(" content:", "content", _content),
        ),
    ),
    Relation: (
        "RELATION ",
        (
            *_TABLE,
            Word(" relation_id: ", "relation_id"),
            Word(" replica_identity: ", "replica_identity"),
            Word(" columns: ", "columns", _names),
            Word(" type_oids: ", "type_oids", _numbers),
            Word(" typmods: ", "typmods", _numbers),
            Word(" key_columns: ", "key_columns", _names),
            _XID,
        ),
    ),
    Type: ("TYPE ", (Word("", "namespace"), Word(".", "name"), Word(" type_oid: ", "type_oid"), _XID)),
    Origin: ("ORIGIN ", (Word("", "origin"),)),
    Truncate: (
        "TRUNCATE ",
        (
            Word("", "tables", _tables),
            Word("", "restart_identity", _flag(" RESTART IDENTITY")),
            Word("", "cascade", _flag(" CASCADE")),
            _XID,
        ),
    ),
    Ddl: (
        "DDL",
        (
            Word(" prefix: ", "prefix"),
            Word(" relid: ", "relid"),
            Word(" cmdtype: ", "cmdtype"),
            Word(" owner: ", "owner"),
            Word(" sql: ", "sql"),
            Word(" content: ", "content"),
        ),
    ),
    Insert: ("INSERT INTO ", _ROW_CHANGE),
    Update: ("UPDATE ", _ROW_CHANGE),
    Delete: ("DELETE FROM ", _ROW_CHANGE),
    Heartbeat: (
        "HEARTBEAT",
        (
            Word(" wal_end: ", "wal_end"),
            Word(" wal_flushed: ", "wal_flushed"),
            Word(" time: ", "time"),
            Word(" reply: ", "reply", lambda given: str(int(given))),
        ),
    ),
    Unknown: ("UNKNOWN", (Word(" raw: ", "raw", _bytes),)),
    Corrupt: ("CORRUPT", (Word(" error: ", "error"), Word(" raw: ", "raw", _bytes))),
}
"""Each kind of event: how its line begins, and the fields in their order."""
