"""What the scan of pgoutput must know of each message beforehand: its relation, and whether it has a transaction id.

The walk in pgoutput_walk.py finds the relations of rows, and reads Relation messages, and those that open or close a
streamed block. It stops at those with something odd, which Python reads here.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np
import pyarrow as pa

from ....errors import DecodeError
from ....formats.base import Format
from ....formats.pgoutput.messages import HEAD_BYTES, RECORDS, RELATION_TAG, TRUNCATE_TAG, read_message, try_message
from ....formats.pgoutput.relations import ASKS, NOTHING, ReadMessage, role_of
from ....framing.copy_data import ENVELOPE, ENVELOPE_BYTES
from ....options import ReadOptions
from ...arrays import Array, unused
from ...jit.intrinsics import BLOCK
from ..dictionary import CELLS
from ..joined_texts import can_join
from ..message_batches import MessageBatch
from ..notes import UTF8, ScanInput
from ..registry import FindInput
from ..relations.characters import MOST_GROWTH, NO_CHARACTERS, characters_of
from ..relations.described import OUTSIDE, Described
from ..relations.new_relations import LAST_SIZE, TEXT_MORE, TEXT_PER_BYTE, rewrite
from ..relations.relation_table import RelationTable, larger_size
from .pgoutput_walk import (
    BLOCKS,
    CODES,
    DESCRIBED,
    FOUND_FIELDS,
    GENERATION,
    HASH,
    INDEX,
    KEY,
    LENGTH,
    OPEN_BLOCK,
    OWN,
    OWN_FIELDS,
    PROBES,
    RELATIONS,
    REWRITTEN_START,
    ROOM,
    SEEN_FIELDS,
    STATE_FIELDS,
    TABLES,
    TRUNCATE_HEAD,
    UNSURE,
    USED,
    find_relation_codes,
    home_slot,
    keep_all,
)

_ROLES = {dialect: np.full(256, NOTHING, np.uint8) for dialect in RECORDS}
"""The role of each kind of message, by its kind byte."""
for _dialect, _records in RECORDS.items():
    for _tag, (_kind, _) in _records.items():
        _ROLES[_dialect][_tag] = role_of(_kind)

RELATION_TAG_BYTE, ENVELOPE_TAG = bytes([RELATION_TAG]), bytes([ENVELOPE])

SLOTS, MORE_SLOTS = 1 << 8, 1 << 4
"""How many slots there are at first, and how many times as many when they are not enough, powers of two: for relations
by their number and for Relation messages by their bytes."""

ASKED_BEFORE, KNOWN_PER_ASK, MOST_PER_MESSAGE = 4, 32, 4
"""All known relations that have entries are kept once a walk has asked for more than the first number of them, and for
more than one in the second number, unless they are more than the third for each message that follows: it may need few
of them. The count of requests continues over messages that Python reads, after which relations are no longer kept."""

MOST_AT_ONCE = 1 << 12
"""Among how many messages Relation messages are rewritten at once."""


NONE_FOUND = np.empty((0, FOUND_FIELDS), np.int64)


def _with_found(found: Array, entry: int, index: int) -> Array:
    """What was found, with this for the first message."""
    return np.concatenate([np.array([[entry, index, -1, -1]]), found[1:]])


MOST_KEPT = 1 << 24
"""Bytes of Relation messages that are kept."""


class PreparedRelations:
    """Looks up relations, one message batch at a time; see Preparation. Walks share them: few relations are new."""

    def __init__(self, settings: Array, options: ReadOptions) -> None:
        self._settings = np.append(settings, np.int64(options.dialect == "opengauss"))
        self._options = options
        self._known = KnownMessages(partial(read_message, encoding=options.encoding, errors=options.encoding_errors))

    def begin(self, format: Format) -> FindInput:
        """See Preparation.begin."""
        known = format.relations
        reader = format.fresh(known and known.copy())  # runs ahead of the format, and comes to the same
        walk = _Walk(reader, self._known, self._options, self._settings[UTF8] == 1)

        def find(message_batch: MessageBatch) -> ScanInput:
            codes, described = walk.find(message_batch)
            table = self._known.table
            settings = np.concatenate([self._settings, codes])
            return ScanInput(table.dictionary(), settings, table.text(), described)

        return find


class KnownMessages:
    """Relation messages that were read before, and the table of their relations."""

    def __init__(self, read: ReadMessage) -> None:
        self.table = RelationTable(read)
        self.text = np.empty(1 << 16, np.uint8)
        self.used = 0
        self.slots = np.zeros((SLOTS, SEEN_FIELDS), np.int64)
        self.generation = 0
        """Changes when entries of the dictionary become invalid."""

    def forget_much(self) -> None:
        """Begins anew where a stream has described very many tables."""
        if self.table.forget_much() or self.used > MOST_KEPT:
            self.slots[:] = 0
            self.used = 0
            self.table.arrays.used[LAST_SIZE] = 0
            self.generation += 1

    def make_room(self, size: int) -> None:
        """Makes room for messages of so many bytes, whose relations are in the table."""
        while 2 * len(self.table.relations) >= len(self.slots):
            left = self.slots[self.slots[:, LENGTH] > 0]
            self.slots = np.zeros((MORE_SLOTS * len(self.slots), SEEN_FIELDS), np.int64)
            homes = home_slot(left[:, HASH], len(self.slots))
            for probe in range(PROBES):
                places = homes + probe & len(self.slots) - 1
                is_free = self.slots[places, LENGTH] == 0
                self.slots[places[is_free]] = left[is_free]
                is_left = self.slots[places, INDEX] != left[:, INDEX]  # of those with the same place, one has got it
                left, homes = left[is_left], homes[is_left]
                if not len(left):
                    break
        if self.used + size + BLOCK > len(self.text):
            larger = unused(larger_size(self.used + size + BLOCK), np.uint8)
            larger[: self.used] = self.text[: self.used]
            self.text = larger

    def make_room_to_write(self, size: int) -> bool:
        """Makes room for a message of so many bytes and for its relation; returns whether there may be so many."""
        self.make_room(size)
        return size <= MOST_KEPT and self.table.make_room(size + CELLS, TEXT_PER_BYTE * size + TEXT_MORE)


class _Walk:
    """A walk over the message batches of one stream.

    reader   knows the relations before each batch; afterwards those after it
    """

    def __init__(self, reader: Format, known: KnownMessages, options: ReadOptions, utf8: bool) -> None:
        if reader.relations is None:
            raise TypeError(f"{reader.name} has no relations")
        self._reader, self._relations = reader, reader.relations
        self._known, self._options, self._utf8 = known, options, utf8
        self._rewrites, self._texts = not utf8 and can_join(options), (options.encoding, options.encoding_errors)
        self._characters = NO_CHARACTERS  # until a name is not ASCII
        self._roles = _ROLES[options.dialect]
        self._cache = np.zeros((2, SLOTS, 2), np.int64)
        self._own = np.zeros((SLOTS, OWN_FIELDS), np.int64)
        self._state = np.zeros(STATE_FIELDS, np.int64)
        self._known_generation = known.generation
        self._asked = 0
        self._take_blocks()

    def find(self, message_batch: MessageBatch) -> tuple[Array, Described]:
        """Returns the relation codes of the messages of the next batch, and the relations that they describe."""
        known, relations = self._known, self._relations
        known.forget_much()
        if known.generation != self._known_generation:
            self._known_generation = known.generation
            self._take_blocks()
        count = len(message_batch.starts)
        # A table of a Truncate message takes four bytes of it. Memory that is not used costs nothing.
        most_tables = int((message_batch.stops - message_batch.starts).sum()) // 4
        codes, described = np.empty(count + most_tables, np.int64), np.empty((6, count), np.int64)
        blocks = np.empty((2, count), np.int64)
        state = self._state
        state[[DESCRIBED, TABLES, BLOCKS]], state[CODES] = 0, count
        message = learned = 0
        found, rewritten = NONE_FOUND, np.empty(0, np.uint8)
        while True:
            begin = message
            state[USED], state[RELATIONS], state[ROOM] = known.used, len(known.table.relations), 0
            first_described = int(state[DESCRIBED])
            self._grow_cache()
            message = find_relation_codes(
                message_batch.buffer,
                message_batch.starts,
                message_batch.stops,
                message,
                self._roles,
                found,
                rewritten,
                self._cache,
                known.text,
                known.slots,
                codes,
                described,
                blocks,
                self._own,
                state,
                known.table.arrays,
                self._characters,
                self._utf8,
            )
            found = found[message - begin :]
            known.used = int(state[USED])
            if state[RELATIONS] > len(known.table.relations):
                self._take_written(codes, described[:, first_described : state[DESCRIBED]])
            data = message_batch.message(message) if message < count else b""
            record = data[ENVELOPE_BYTES if data[:1] == ENVELOPE_TAG else 0 :]
            in_block = int(state[OPEN_BLOCK] != OUTSIDE)
            if state[OWN] == len(self._own):
                self._own = np.concatenate([self._own, np.zeros_like(self._own)])
            if state[ROOM] and known.make_room_to_write(len(record) if self._utf8 else (1 + MOST_GROWTH) * len(record)):
                continue
            if record[:1] == RELATION_TAG_BYTE:
                if self._rewrites and not len(self._characters):
                    self._characters = characters_of(self._options.encoding)
                    continue
                if self._rewrites and not in_block and not len(found):
                    found, rewritten = self._rewrite(message_batch, message)
                    continue
                head = HEAD_BYTES + 4 * in_block
                relation = try_message(record, head, *self._texts) if len(record) <= MOST_KEPT else None
                if relation is not None:
                    entry = known.table.entry(relation)
                    known.make_room(len(record))
                    found = _with_found(found, entry, len(known.table.relations) - 1)
                    continue
            facts, blocks_before = described[:4, : state[DESCRIBED]], blocks[:, : state[BLOCKS]]
            listed = Described(facts, known.table.relations, known.table.read, blocks_before)
            learned = listed.learn(relations, learned, count)
            if message == count:
                return codes[: state[CODES]], listed
            if self._roles[record[0]] == ASKS:
                self._asked += 1
                if not self._has_known and self._keep_known(count - message):
                    found = _with_found(found, -1, -1)  # of a Truncate message it may be the entry of another table
                    continue
                at = 1 + 4 * in_block + (TRUNCATE_HEAD + 4 * state[TABLES] if record[0] == TRUNCATE_TAG else 0)
                entry = known.table.entry(relations.described(int.from_bytes(record[at : at + 4], "big")))
                known.make_room(0)  # of relations that were known before, no message was seen
                found = _with_found(found, entry, -1)
                continue
            codes[message] = 1
            message += 1
            found = found[1:]
            with suppress(DecodeError):  # it will be told when the record is read
                for frame in self._reader.frames(data):
                    self._reader.read(data, frame, self._options)
            self._take_blocks()
            blocks[:, state[BLOCKS]] = message - 1, state[OPEN_BLOCK]
            state[BLOCKS] += 1

    def _grow_cache(self) -> None:
        """Makes the cache as large as there are slots, where there are many relations."""
        slots = len(self._known.slots)
        if self._cache.shape[1] < slots:
            larger, filled = np.zeros((2, slots, 2), np.int64), self._cache[0, self._cache[0, :, KEY] != 0]
            larger[0, filled[:, KEY] & slots - 1] = filled
            self._cache, self._state[UNSURE] = larger, 1

    def _keep_known(self, messages: int) -> bool:
        """Keeps the relations that are known outside of blocks and have entries; none if they are many for so many
        messages, or for what was asked. Returns whether it kept some.
        """
        outside = self._relations.outside
        if len(outside) > MOST_PER_MESSAGE * messages or self._asked <= max(
            ASKED_BEFORE, len(outside) // KNOWN_PER_ASK
        ):
            return False
        self._has_known, self._asked = True, 0
        entries = self._known.table.known_entries(outside.values())
        has_entry = entries >= 0
        keep_all(self._cache, self._state, np.array([*outside], np.int64)[has_entry], entries[has_entry])
        return bool(has_entry.any())

    def _take_blocks(self) -> None:
        """Begins anew with what the reader knows of relations and blocks."""
        relations, state = self._relations, self._state
        table = self._known.table
        own = [(xid, number, table.entry(one)) for xid, number, one in relations.described_in_blocks()]
        self._own = np.zeros((max(SLOTS, 2 * len(own)), OWN_FIELDS), np.int64)
        self._own[: len(own)] = np.array(own, np.int64).reshape(-1, OWN_FIELDS)
        state[GENERATION : GENERATION + 2] += 1
        state[OPEN_BLOCK] = OUTSIDE if relations.block is None else relations.block
        state[OWN], state[UNSURE] = len(own), 1
        self._has_known = False

    def _take_written(self, codes: Array, described: Array) -> None:
        """Adds the relations that compiled code has written to the table.

        described   int64[6, n], see `find_relation_codes`
        """
        known = self._known
        indexes, items = np.unique(described[1], return_index=True)
        new = described[:, items[np.searchsorted(indexes, len(known.table.relations)) :]]
        offsets = pa.py_buffer(new[4:].T.ravel())  # every other text is what lies between two of them
        kept = pa.Array.from_buffers(pa.large_binary(), 2 * len(new[0]) - 1, [None, offsets, pa.py_buffer(known.text)])
        records = np.asarray(kept)[::2].tolist()
        known.table.add_written(records, (codes[new[0]] >> 1).tolist())

    def _rewrite(self, message_batch: MessageBatch, first: int) -> tuple[Array, Array]:
        """Finds where the Relation messages from this message on are in UTF-8, and returns that text, too."""
        most = slice(first, first + MOST_AT_ONCE)
        buffer, starts, stops = message_batch.buffer, message_batch.starts[most], message_batch.stops[most]
        found = np.full((len(starts), FOUND_FIELDS), -1, np.int64)
        for tag in (ENVELOPE, RELATION_TAG):
            is_tagged = starts < stops
            is_tagged &= buffer[np.where(is_tagged, starts, 0)] == tag
            if tag == ENVELOPE:
                starts = starts + np.where(is_tagged, ENVELOPE_BYTES, 0)
        chosen = np.flatnonzero(is_tagged)
        view = memoryview(buffer)
        records = [
            view[start:stop] for start, stop in zip(starts[chosen].tolist(), stops[chosen].tolist(), strict=True)
        ]
        rewritten, found[chosen, REWRITTEN_START:] = rewrite(records, *self._texts)
        return found, rewritten
