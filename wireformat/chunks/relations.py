"""The relations of pgoutput at the beginning of each chunk, from the messages that describe them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..errors import DecodeError
from ..events import Begin, Relation, StreamStart, Unknown
from ..formats.pgoutput.messages import RECORDS
from ..formats.pgoutput.reader import PgOutput
from ..formats.pgoutput.relations import CLOSES, OPENS, TELLS, Relations, Said, role_of
from ..framing.copy_data import ENVELOPE, ENVELOPE_BYTES
from ..options import ReadOptions


def _tags(*kinds: type) -> bytes:
    return bytes(tag for tag, (kind, _) in RECORDS["postgresql"].items() if kind in kinds)


_RELATION, _BEGIN, _STREAM_START = (_tags(kind)[0] for kind in (Relation, Begin, StreamStart))

NEEDED_TAGS = bytes(
    tag for tag, (kind, _) in RECORDS["postgresql"].items() if role_of(kind) in (TELLS, OPENS, CLOSES) or kind is Begin
)
"""The kind bytes of the messages that describe a relation, with which streamed blocks and transactions begin and end,
and of BEGIN, which ends a block where the connection broke. Any other message that can be the first on a new connection
has the same meaning in a block and outside."""


class SaidInChunk(NamedTuple):
    """What a message of a chunk says of relations and blocks.

    chunk   index of the chunk; -1 for what was known before the first one
    said    the event
    """

    chunk: int
    said: Said


def needed_messages(messages: Iterable[bytes]) -> list[bytes]:
    """Returns the messages of one chunk that say something of relations and blocks, without repetitions."""
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


def said_of_stream(
    chunks: Iterable[tuple[int, Sequence[bytes]]], options: ReadOptions, known: Iterable[Relation] = ()
) -> Iterator[SaidInChunk]:
    """Yields what the needed messages of all chunks of a stream say, without what was known already.

    chunks   their indices, ascending, and messages
    known    relations before the first chunk
    """
    relations = Relations()
    reader = PgOutput(relations)
    repeated: dict[int, Relation] = {}  # descriptions since the last message of another kind
    for relation in known:
        relations.take(relation)
        yield SaidInChunk(-1, relation)
    for number, messages in chunks:
        for message in messages:
            said = said_in(reader, message, options)
            if not isinstance(said, Relation) or relations.block is not None:
                repeated.clear()
            else:
                said = replace(said, lsn=None)
                if repeated.get(said.relation_id) == said:
                    continue
                repeated[said.relation_id] = said
            yield SaidInChunk(number, said)


def said_in(reader: PgOutput, message: bytes, options: ReadOptions) -> Said:
    """Returns the event of a message. An unreadable one becomes what a decoder of the whole stream makes of it."""
    frame = None
    try:
        (frame,) = reader.frames(message)
        return reader.read(message, frame, options)
    except DecodeError:
        return (frame and reader.lost(message, frame, options)) or Unknown(raw=b"")


def relations_before(chunk: int, all_said: Iterable[SaidInChunk]) -> Relations:
    """Returns the relations before the first message of a chunk."""
    relations = Relations()
    for one in all_said:
        if one.chunk >= chunk:
            break
        relations.take(one.said)
    return relations
