"""What formats cannot say, one thing per row. The docs print this table; conversion and the tests use it.

A writer never leaves anything out by itself: what it cannot say is an EncodeError. `adapted` in adapt.py leaves it out
beforehand, where that can be done, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import MISSING, fields, replace
from typing import Any, NamedTuple

from ..events import LITERAL_TYPES, OF_STREAM, Delete, Event, Insert, RowChange, StreamAbort, Truncate, TupleData
from ..grammar.sql_text import form_of

Says = Callable[[type[Event]], Set[str]]
"""`Format.says`: the fields of an event of this type that the format can express."""


class Difference(NamedTuple):
    """One thing that some formats cannot say.

    name        what rows of formats call it
    what        it is
    becomes     what becomes of it
    change      (event, Format.says) to the event without it; None where the writer refuses it, or nothing is to be done
    """

    name: str
    what: str
    becomes: str
    change: Callable[[Event, Says], Event] | None = None


def _without_facts(event: Event, says: Says) -> Event:
    said = says(type(event))
    lost = [field for field in fields(event) if field.name not in (*OF_STREAM, *said)]
    nothing: dict[str, Any] = {field.name: field.default for field in lost if field.default is not MISSING}
    return replace(event, **nothing)


def _one_image(event: Event, says: Says) -> Event:
    if isinstance(event, Insert):
        return replace(event, old=None)
    return replace(event, new=None) if isinstance(event, Delete) else event


def _images(event: Event, change: Callable[[TupleData, str], TupleData | None]) -> Event:
    if not isinstance(event, RowChange):
        return event
    new, old = (image and change(image, side) for side, image in (("new", event.new), ("old", event.old)))
    return replace(event, new=new, old=old)


def _without_empty(event: Event, says: Says) -> Event:
    return _images(event, lambda image, side: image if image.names else None)


def _without_clob(event: Event, says: Says) -> Event:
    def rename(image: TupleData, side: str) -> TupleData:
        return replace(image, types=tuple("text" if type == "clob" else type for type in image.types))

    return _images(event, rename)


def _without_types(event: Event, says: Says) -> Event:
    def forms(image: TupleData, side: str) -> TupleData:
        cells = zip(image.values, image.types, strict=True)
        return replace(image, types=tuple(form_of(value, type) for value, type in cells))

    return _images(event, forms)


def _without_names(event: Event, says: Says) -> Event:
    def number(image: TupleData, side: str) -> TupleData:
        if side == "old":
            return image
        return replace(image, names=tuple(f"${place}" for place in range(1, len(image.names) + 1)))

    return _images(event, number)


def _aborted_number(event: Event, says: Says) -> Event:
    if not isinstance(event, StreamAbort) or event.subxid is None:
        return event
    return replace(event, xid=event.subxid, subxid=None)


def _without_xid(event: Event, says: Says) -> Event:
    return replace(event, xid=None) if isinstance(event, Truncate) and event.tables else event


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "both of stream abort",
        "of a STREAM_ABORT, both the transaction and what of it is dropped",
        "the number of what is dropped",
        _aborted_number,
    ),
    Difference(
        "facts",
        "what a record has no place for: csn, LSNs, xid, times, origin or username of a "
        "transaction, xid and old_kind of a row change, and that a value, as hexadecimal digits, was binary",
        "left out",
        _without_facts,
    ),
    Difference("xid of truncate", "the xid of a TRUNCATE that names its tables", "left out", _without_xid),
    Difference("one image", "an old tuple of an INSERT, a new tuple of a DELETE", "left out", _one_image),
    Difference("empty tuples", "a tuple without columns", "no tuple", _without_empty),
    Difference("clob", "the type clob", "named text, as the server does", _without_clob),
    Difference(
        "types",
        "types",
        f"the form of each literal, as {LITERAL_TYPES}number; `types` is null in the table",
        _without_types,
    ),
    Difference("names of new", "names of the columns of a new tuple", "$1, $2 and so on", _without_names),
    Difference("unsent values", "a value that was not sent", "the writer refuses it"),
    Difference(
        "unnumbered types", "a type that is neither built in nor written as oid:<number>", "the writer refuses it"
    ),
    Difference("types without a name", "a type without a name, as oid:<number>", "the writer refuses it"),
    Difference("change records only", "TRUNCATE, DDL, ABORT, PREPARE", "the writer refuses it"),
    Difference(
        "no messages, blocks or relations",
        "MESSAGE, COMMIT_PREPARED, ROLLBACK_PREPARED, streamed blocks and their ends, RELATION, TYPE, ORIGIN",
        "the writer refuses it",
    ),
    Difference(
        "records of test_decoding",
        "DDL, ABORT, HEARTBEAT, RELATION, TYPE, ORIGIN, a PREPARE without a gid, an xid of more than 32 bits",
        "the writer refuses it",
    ),
    Difference(
        "end of a prefix",
        "where the prefix of a MESSAGE ends, if a size fits what follows at two places",
        "the writer refuses it, the reader reports it",
    ),
    Difference(
        "all quotes",
        "the setting quote_all_identifiers",
        "names are written with quotes where needed; those of types as they were read",
    ),
    Difference(
        "owners of types",
        "whether a type named like a number, boolean or bit type is a user's",
        "its values are written without quotes",
    ),
    Difference("heartbeat", "HEARTBEAT", "the writer refuses it: no sample is published"),
    Difference(
        "blanks in schemas",
        "where a schema with a blank in it ends",
        "read back as the shortest schema, but for the reader's known_tables",
    ),
    Difference(
        "lsn",
        "the LSN of a record that is not in a batch",
        "left out; its carrier has it. DDL of mppdb-json has its own",
    ),
    Difference("digits of floats", "all digits of a float", "the server writes fewer; this package writes the value"),
    Difference(
        "dropped last columns", "that the last columns were dropped", "written without the comma that they leave"
    ),
    Difference(
        "control without facts",
        "a record around transactions, or a HEARTBEAT, without one of the numbers, times and names that its message "
        "has, or with an invalid time",
        "the writer refuses it",
    ),
    Difference(
        "rows without images",
        "an INSERT or UPDATE without a new tuple, a DELETE without an old one, an old tuple that lacks columns of the "
        "key",
        "the writer refuses it",
    ),
    Difference(
        "xids outside of blocks",
        "the xid of a row change, TRUNCATE, MESSAGE, RELATION or TYPE outside of a streamed block, one without an xid "
        "in it but of a MESSAGE that is not transactional, a MESSAGE's xid below 3 in it, an xid of more than 32 bits",
        "the writer refuses it; with dialect=opengauss BEGIN has 64 bits",
    ),
    Difference(
        "rows without a relation",
        "a row of a table, or of columns, that no RELATION has described",
        "the writer puts a RELATION before it, with a number of its own",
    ),
    Difference(
        "kind of old",
        "whether an old tuple is the key or the whole row, where the event does not say",
        "read back as either",
    ),
    Difference("records of pgoutput", "ABORT, STREAM_CHANGE; DDL but with dialect=opengauss", "the writer refuses it"),
    Difference(
        "records of its opengauss dialect",
        "with dialect=opengauss: MESSAGE, two-phase commit, streamed blocks",
        "the writer refuses it",
    ),
)
"""In the order in which an event is adapted."""
