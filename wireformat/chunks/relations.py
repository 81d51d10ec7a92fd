"""The relations of pgoutput at the beginning of each chunk, from the messages that describe them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, takewhile
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DecodeError
from ..events import Begin, Relation, StreamStart, Unknown
from ..formats.pgoutput.messages import RECORDS
from ..formats.pgoutput.reader import PgOutput
from ..formats.pgoutput.relations import CLOSES, OPENS, TELLS, RelationEvent, Relations, describing_events, role_of
from ..formats.pgoutput.undelivered import Descriptions
from ..framing.copy_data import ENVELOPE, ENVELOPE_BYTES
from ..options import ReadOptions
from ..sources.known_relations import KnownRelations


def _tags(*kinds: type) -> bytes:
    return bytes(tag for tag, (kind, _) in RECORDS["postgresql"].items() if kind in kinds)


_RELATION, _BEGIN, _STREAM_START = (_tags(kind)[0] for kind in (Relation, Begin, StreamStart))

NEEDED_TAGS = bytes(
    tag for tag, (kind, _) in RECORDS["postgresql"].items() if role_of(kind) in (TELLS, OPENS, CLOSES) or kind is Begin
)
"""The kind bytes of the messages that describe a relation, with which streamed blocks and transactions begin and end,
and of BEGIN, which ends a block where the connection broke. Any other message that can be the first on a new connection
has the same meaning in a block and outside."""


Scopes = dict[int | None, dict[int, Relation | None]]
"""See Relations.scopes."""


class RelationChanges(NamedTuple):
    """What the messages of a chunk have changed of the relations and blocks.

    chunk     index of the chunk; -1 for what was known before the first one
    block     see Relations
    ended     the scopes that have ended, or have begun again
    changed   the relations that have changed or are lost, by scope and number
    """

    chunk: int
    block: int | None
    ended: tuple[int | None, ...]
    changed: Scopes


def needed_messages(messages: Iterable[bytes]) -> list[bytes]:
    """Returns the messages of one chunk that describe relations and blocks, without repetitions."""
    found: list[bytes] = []
    recent: dict[tuple[int, bytes], bytes] = {}  # the last descriptions since a block may have begun or ended
    may_be_in_block = True
    for message in messages:
        tag = message[ENVELOPE_BYTES : ENVELOPE_BYTES + 1] if message[:1] == _ENVELOPE else message[:1]
        if not tag or tag[0] not in NEEDED_TAGS:
            continue
        body = message[ENVELOPE_BYTES:] if message[:1] == _ENVELOPE else message
        if tag[0] == _RELATION:
            keys = [(at, body[at : at + 4]) for at in (1, 5)]  # the relation's number follows an xid in a block
            if any(recent.get(key) != body for key in keys):
                found.append(message)
            recent |= dict.fromkeys(keys, body)
        elif may_be_in_block or tag[0] != _BEGIN:
            found.append(message)
            recent.clear()
            may_be_in_block = tag[0] == _STREAM_START
    return found


_ENVELOPE = bytes([ENVELOPE])


def of_needed_kinds(messages: pa.Array) -> list[bytes]:
    """Returns the messages of NEEDED_TAGS in a binary array."""
    found: list[bytes] = messages.filter(are_of_needed_kinds(messages)).to_pylist()
    return found


def are_of_needed_kinds(messages: pa.Array) -> pa.Array:
    """Returns which messages in a binary array are of NEEDED_TAGS."""
    first, enveloped = (pc.binary_slice(messages, at, at + 1) for at in (0, ENVELOPE_BYTES))
    tag = pc.if_else(pc.equal(first, _ENVELOPE), enveloped, first)
    tags = pa.array([bytes([tag]) for tag in NEEDED_TAGS], messages.type)
    return pc.is_in(tag, tags)


def relation_changes(
    chunks: Iterable[tuple[int, Sequence[bytes]]],
    options: ReadOptions,
    known: Iterable[Relation] = (),
    descriptions: Descriptions | None = None,
) -> Iterator[RelationChanges]:
    """Yields what the needed messages of all chunks of a stream change, of the chunks that change something.

    chunks         their indices, ascending, and messages
    known          relations before the first chunk
    descriptions   learns from all of them
    """
    events: list[RelationEvent] = [*describing_events(known)]
    reader = PgOutput()
    for event in events:
        reader.relations.take(event)
    before: Scopes = {}
    block: int | None = None
    for number, messages in chain([(-1, ())], chunks):
        for event in chain(events if number < 0 else (), (event_of(reader, message, options) for message in messages)):
            if descriptions is not None:
                descriptions.take(event)
        after = reader.relations.scopes
        found = _changes(number, reader.relations.block, before, after)
        if found.ended or found.changed or found.block != block:
            yield found
        before, block = after, found.block


def _without_lsn(relation: Relation) -> Relation:
    return relation if relation.lsn is None else replace(relation, lsn=None)


def _changes(chunk: int, block: int | None, before: Scopes, after: Scopes) -> RelationChanges:
    ended = tuple(scope for scope, known in before.items() if not known.keys() <= after.get(scope, {}).keys())
    changed: Scopes = {}
    for scope, known in after.items():
        there = {} if scope in ended else before.get(scope, {})
        of_scope = {
            number: relation and _without_lsn(relation)
            for number, relation in known.items()
            if number not in there or _differ(there[number], relation)
        }
        if of_scope:
            changed[scope] = of_scope
    return RelationChanges(chunk, block, ended, changed)


def _differ(one: Relation | None, other: Relation | None) -> bool:
    if one is None or other is None or one is other:
        return one is not other
    return _without_lsn(one) != _without_lsn(other)


def event_of(reader: PgOutput, message: bytes, options: ReadOptions) -> RelationEvent:
    """Returns the event of a message. An unreadable one becomes what a decoder of the whole stream makes of it."""
    frame = None
    try:
        (frame,) = reader.frames(message)
        return reader.read(message, frame, options)
    except DecodeError:
        return (frame and reader.lost(message, frame, options)) or Unknown(raw=b"")


def relations_before(chunk: int, all_changes: Iterable[RelationChanges]) -> Relations:
    """Returns the relations before the first message of a chunk."""
    return relations_after(takewhile(lambda one: one.chunk < chunk, all_changes))


def known_before(chunk: int | None, all_changes: Iterable[RelationChanges]) -> KnownRelations:
    """Returns the relations before a chunk, for the position at its end; None means after the last one."""
    before = (one for one in all_changes if chunk is None or one.chunk < chunk)
    return KnownRelations(relations_after(before, with_lost=True))


def relations_after(all_changes: Iterable[RelationChanges], *, with_lost: bool = False) -> Relations:
    """Returns the relations after these chunks, the first ones of a stream.

    with_lost   whether one that is lost is what it was before, as in a position
    """
    block: int | None = None
    scopes: Scopes = {}
    for one in all_changes:
        block = one.block
        for scope in one.ended:
            scopes.pop(scope, None)
        for scope, changed in one.changed.items():
            found = ((number, relation) for number, relation in changed.items() if relation or not with_lost)
            scopes.setdefault(scope, {}).update(found)
    return Relations.of_scopes(block, scopes)
