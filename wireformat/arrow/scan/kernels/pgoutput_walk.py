"""The compiled walk over messages of pgoutput: the relations of rows, Relation messages, and streamed blocks."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....formats.pgoutput.messages import (
    ASIDE_BYTES,
    FIRST_NORMAL_XID,
    LEAST_ROW_BYTES,
    RELATION_TAG,
    STREAM_COMMIT,
    STREAM_START,
    TRUNCATE_TAG,
)
from ....formats.pgoutput.relations import ASKS, CLOSES, ENDS, MAY_END, NOTHING, OPENS, TELLS
from ....framing.copy_data import ENVELOPE, ENVELOPE_BYTES
from ...arrays import Array, Int
from ...jit.byte_ranges import copy_bytes, same_bytes
from ...jit.compiler import compiled, hot, inner
from ...jit.intrinsics import BLOCK
from ..notes import LINES, QUOTED
from ..primitives import is_ascii_anywhere, read_32, read_64, zero_at
from ..relations.characters import MOST_GROWTH
from ..relations.described import DROPPED, KEPT, OUTSIDE
from ..relations.new_relations import DECODED, IN_ASCII, IN_UTF8, NO_ROOM, RelationArrays, decode_names, write_relation
from .pgoutput_values import FIRST_TIME, LAST_TIME

RARE_TAGS = b"kMbPKrOYTSEcAp"
"""Kind bytes of the messages that the scan leaves to pgoutput_rare.py."""

IS_OPENGAUSS, RELATION_CODES = QUOTED, LINES
"""Indexes of the scan's settings: whether the dialect is openGauss's, and the relation code of the first message.

The code of a row, or of a Relation message, is 2 times its relation's entry in the dictionary (0 without a relation),
plus 1 in a streamed block: see `entry_of` and `is_in_block`. That of a Truncate message of one table is the same. If it
has more, its code is the complement of such a number, with the index of the first of their entries among the codes,
which follow those of the messages; it has as many tables as it says. The code of other messages is 1 if a block is open
before them: the declaration must see it if they cannot be in one. So is that of a message that Python has read."""

STOP_TAG, ABORT_TAG, PREPARE_TAG = b"EAp"
START_BYTES, STREAM_COMMIT_BYTES = 1 + STREAM_START.sizeof(), 1 + STREAM_COMMIT.sizeof()
ABORT_BYTES, PARALLEL_ABORT_BYTES = 1 + 8, 1 + 24
LEAST_PREPARE_BYTES = 1 + 30
"""Messages of streamed transactions with their kinds. An abort may have an LSN and a time; a prepared one has a gid,
which ends with a zero byte."""

TRUNCATE_HEAD = 5
"""A Truncate message has the number of its tables, and flags, before the numbers of their relations."""

LEAST_RELATION_BYTES = 10
"""A Relation message has a kind, a number, two names, a replica identity and a number of columns."""

PROBES = 16
"""How many slots are tried, for relations by their number and for Relation messages by their bytes. What has no slot is
found by Python."""

KEY, ENTRY = range(2)
"""Fields of a slot of a relation: the generation and its number; its dictionary entry."""

OWN_XID, OWN_NUMBER, OWN_ENTRY, OWN_FIELDS = range(4)
"""Fields of a relation that is described in blocks: of which transaction, its number, and its dictionary entry."""

START, LENGTH, HASH, SEEN_ENTRY, INDEX, SEEN_FIELDS = range(6)
"""Fields of a slot of a Relation message: its bytes among those that are kept, their hash, the entry of the relation in
the dictionary, and its index in the table of relations. LENGTH is 0 if the slot is free."""

FOUND_ENTRY, FOUND_INDEX, REWRITTEN_START, REWRITTEN_STOP, FOUND_FIELDS = range(5)
"""What Python has found for a message: its relation's entry in the dictionary and, of a Relation message, its index in
the table; or where the message is in UTF-8. Each is -1 if it has not looked, or found nothing."""


@hot
def is_in_block(code: Int) -> Int:
    """1 if a message with this code is in a streamed block, else 0."""
    return (code if code >= 0 else ~code) & 1


@hot
def entry_of(code: Int) -> Int:
    """The dictionary entry of a message with this code; of a Truncate message of several tables, see RELATION_CODES."""
    return (code if code >= 0 else ~code) >> 1


@inner
def truncated_tables(buffer: Array, at: Int, code: Int) -> Int:
    """How many tables a Truncate message has, if it has a relation; `at` is the byte after its kind."""
    return np.int64(1) if code >= 0 else read_32(buffer, at + 4 * is_in_block(code))


@inner
def is_aside(buffer: Array, at: Int, stop: Int) -> bool:
    """Whether the message is a Message outside of blocks; see `is_aside` of the declaration."""
    if stop - at < ASIDE_BYTES or buffer[at + 1] != 0:
        return False
    return buffer[at + 5] > 1 or read_32(buffer, at + 1) < FIRST_NORMAL_XID


@inner
def home_slot(hashed: Int, slots: Int) -> Int:
    """The first slot that is tried for a Relation message with this hash."""
    return (hashed ^ hashed >> 17 ^ hashed >> 34) & slots - 1


USED = 0  # how many bytes of messages are kept
DESCRIBED = 1  # how many messages describe a relation
CODES = 2  # how many codes there are
TABLES = 3  # of how many tables of the next message, a Truncate message, the entry is among the codes
RELATIONS = 4  # how many relations there are
ROOM = 5  # 1 if there is no room for the relation of the next message
OPEN_BLOCK = 6  # the xid of the block that is open, or OUTSIDE
BLOCKS = 7  # how many messages open or close a block
OWN = 8  # how many relations are described in blocks
UNSURE = 9  # 1 if the cache may lack a relation of this block: Python then finds those that it does not have
GENERATION = 10  # part of the keys of the cache outside of blocks, and in the next field in this block: with another
# number, the cache is empty
STATE_FIELDS = 12
"""Fields of the state of `find_relation_codes`."""


@inner
def _find(cache: Array, state: Array, in_block: Int, number: Int) -> tuple[Int, Int]:
    """The slot of a relation, or the one that it may take, and its entry, or -1."""
    generation = state[GENERATION + in_block]
    slot = home = number & cache.shape[1] - 1
    for _ in range(PROBES):
        key = cache[in_block, slot, KEY]
        if key == generation << 32 | number:
            return slot, cache[in_block, slot, ENTRY]
        if key >> 32 != generation:
            return slot, np.int64(-1)
        slot = slot + 1 & cache.shape[1] - 1
    state[UNSURE] |= in_block
    return home, np.int64(-1)


@inner
def _keep(cache: Array, state: Array, in_block: Int, number: Int, entry: Int) -> None:
    """Adds a relation to the cache, maybe in place of another one."""
    slot, _ = _find(cache, state, in_block, number)
    cache[in_block, slot, KEY], cache[in_block, slot, ENTRY] = state[GENERATION + in_block] << 32 | number, entry


@compiled
def keep_all(cache: Array, state: Array, numbers: Array, entries: Array) -> None:
    """Adds relations that are known outside of blocks, by their numbers, int64[n], and entries, int64[n]."""
    for item in range(len(numbers)):
        _keep(cache, state, 0, numbers[item], entries[item])


@inner
def _enter_block(xid: Int, cache: Array, own: Array, state: Array) -> None:
    """Opens a block: what was described in others of its transaction is meant again."""
    state[OPEN_BLOCK], state[UNSURE] = xid, 0
    state[GENERATION + 1] += 1
    for item in range(state[OWN]):
        if own[item, OWN_XID] == xid:
            _keep(cache, state, 1, own[item, OWN_NUMBER], own[item, OWN_ENTRY])


@inner
def _end_transaction(xid: Int, is_kept: bool, cache: Array, own: Array, state: Array) -> bool:
    """Ends a streamed transaction; returns whether relations are described in its blocks, which are kept or dropped."""
    for item in range(state[OWN] if is_kept else 0):
        if own[item, OWN_XID] == xid:
            _keep(cache, state, 0, own[item, OWN_NUMBER], own[item, OWN_ENTRY])
    return _drop(OWN_XID, xid, own, state)


@inner
def _drop(field: Int, value: Int, own: Array, state: Array) -> bool:
    """Drops what was described in blocks, of a transaction or of a relation; returns whether there was any."""
    left = np.int64(0)
    for item in range(state[OWN]):
        if own[item, field] != value:
            for other in range(OWN_FIELDS if left < item else 0):
                own[left, other] = own[item, other]
            left += 1
    has_own = left < state[OWN]
    state[OWN] = left
    return has_own


@inner
def _xid_of_end(buffer: Array, at: Int, stop: Int) -> Int:
    """Where the xid is in a message that ends a streamed transaction, or a part of it; -1 if Python must read it."""
    size, tag = stop - at, buffer[at]
    xid_at, flags_at, time_at = at + 1, at + 5, at + 22
    if tag == PREPARE_TAG:
        xid_at, flags_at, time_at = at + 26, at + 1, at + 18
        gid = at + LEAST_PREPARE_BYTES - 1
        if gid >= stop or zero_at(buffer, gid, stop) + 1 != stop or not is_ascii_anywhere(buffer, gid, stop - gid):
            return np.int64(-1)
    elif tag == ABORT_TAG:
        if size == ABORT_BYTES:
            return xid_at
        time_at = at + 17
        if size != PARALLEL_ABORT_BYTES:
            return np.int64(-1)
    elif size != STREAM_COMMIT_BYTES:
        return np.int64(-1)
    time = read_64(buffer, time_at)
    is_good = (tag == ABORT_TAG or buffer[flags_at] == 0) and FIRST_TIME <= time <= LAST_TIME
    return xid_at if is_good else np.int64(-1)


@partial(compiled, by_byte=True)
def find_relation_codes(
    buffer: Array,
    starts: Array,
    stops: Array,
    begin: Int,
    roles: Array,
    found: Array,
    rewritten: Array,
    cache: Array,
    text: Array,
    slots: Array,
    codes: Array,
    described: Array,
    blocks: Array,
    own: Array,
    state: Array,
    written: RelationArrays,
    characters: Array,
    utf8: bool,
) -> Int:
    """Finds the codes of messages, up to the next one that Python must read; returns which it is, or their number.

    begin         the first one
    roles         uint8[256], of each kind of message
    found         int64[n, FOUND_FIELDS], of the first messages
    rewritten     uint8[n], messages in UTF-8
    cache         int64[2, n, 2], relations by their number, as it is meant outside of blocks, and in this one; see KEY
    text          uint8[n], the Relation messages that are kept, with room for those that were found
    slots         int64[n, SEEN_FIELDS], Relation messages; see START
    codes         int64[m], filled
    described     int64[6, m], filled: the facts of Described; of a new relation, where the message is kept
    blocks        int64[2, m], filled; see Described
    own           int64[n, OWN_FIELDS], changed: relations that are described in blocks
    state         int64[STATE_FIELDS], changed; see USED
    written       where new relations are written
    characters    int64[n], of the encoding: see characters.py. NO_CHARACTERS for UTF-8, and where Python rewrites names
    utf8          whether the encoding is UTF-8
    """
    for message in range(begin, len(starts)):
        at, stop = starts[message], stops[message]
        if at < stop and buffer[at] == ENVELOPE:
            at += ENVELOPE_BYTES
        role = roles[buffer[at]] if at < stop else NOTHING
        size = stop - at
        in_block = np.int64(state[OPEN_BLOCK] != OUTSIDE)
        codes[message] = 0
        entry, index = np.int64(-1), np.int64(-1)
        if message - begin < len(found):
            entry, index = found[message - begin, FOUND_ENTRY], found[message - begin, FOUND_INDEX]
        number = np.int64(0)
        tables = number_at = np.int64(0)
        if role == ASKS:
            number_at = at + 1 + 4 * in_block
            if buffer[at] == TRUNCATE_TAG:
                if stop - number_at > TRUNCATE_HEAD:
                    tables = read_32(buffer, number_at)
                number_at += TRUNCATE_HEAD
            if size < LEAST_ROW_BYTES or stop - number_at < 4:
                continue
            if tables > 1 and stop - number_at != 4 * tables:
                codes[message] = in_block
                continue
        elif role == TELLS:  # a Relation message, which is looked up by its bytes, or is new
            at += 4 * in_block  # as if it had no transaction id: its kind is before the number
            size = stop - at
            if size < LEAST_RELATION_BYTES:
                return message
            if in_block == 1 and state[OWN] == len(own):
                state[ROOM] = 1
                return message
            number = read_32(buffer, at + 1)
            hashed = np.int64(size)
            for step in range(1, size - 8, 8):
                hashed ^= read_64(buffer, at + step)
                hashed ^= hashed << 13
                hashed ^= hashed >> 7
                hashed ^= hashed << 17
            hashed ^= read_64(buffer, stop - 8)
            slot = home_slot(hashed, len(slots))
            home = slot
            for _ in range(PROBES):
                if slots[slot, LENGTH] == 0:
                    home = slot
                    break
                if (
                    slots[slot, HASH] == hashed
                    and slots[slot, LENGTH] == size
                    and same_bytes(buffer, at + 1, text, slots[slot, START] + 1, size - 1)
                ):
                    entry, index = slots[slot, SEEN_ENTRY], slots[slot, INDEX]
                    break
                slot = slot + 1 & len(slots) - 1
            else:
                slot = home
            if entry < 0 or slots[slot, INDEX] != index or slots[slot, LENGTH] == 0:
                used = state[USED]
                start = more = np.int64(0)
                if entry < 0:
                    index = state[RELATIONS]
                    if in_block == 0 and message - begin < len(found) and found[message - begin, REWRITTEN_START] >= 0:
                        start = found[message - begin, REWRITTEN_START]
                        more = found[message - begin, REWRITTEN_STOP] - start
                    growth = 0 if utf8 else MOST_GROWTH * size
                    if 2 * index >= len(slots) or used + size + max(more, growth) + BLOCK > len(text):
                        state[ROOM] = 1
                        return message
                end = copy_bytes(text, used, buffer, at, size)
                text[used] = RELATION_TAG
                if entry < 0:
                    first, names = used, IN_UTF8 if utf8 else IN_ASCII
                    if more > 0:
                        first, names = end, DECODED
                        end = copy_bytes(text, end, rewritten, start, more)
                    elif len(characters) > 0:
                        end_of_names = decode_names(text, used, end, end, characters)
                        if end_of_names < 0:
                            return message
                        names = DECODED
                        if end_of_names - end != size or not same_bytes(text, used, text, end, size):
                            first, end = end, end_of_names
                    entry = write_relation(text, first, end, written, names)
                    if entry <= 0:
                        state[ROOM] = entry == NO_ROOM
                        return message
                    state[RELATIONS] += 1
                slots[slot, START], slots[slot, LENGTH], slots[slot, HASH] = used, size, hashed
                slots[slot, SEEN_ENTRY], slots[slot, INDEX] = entry, index
                state[USED] = end
            fact = state[DESCRIBED]
            described[0, fact], described[1, fact], described[2, fact] = message, index, number
            described[3, fact] = state[OPEN_BLOCK]
            described[4, fact], described[5, fact] = slots[slot, START], slots[slot, START] + size
            state[DESCRIBED] += 1
            if in_block == 1 and (state[UNSURE] == 1 or _find(cache, state, 1, number)[1] != entry):
                item = state[OWN]
                own[item, OWN_XID], own[item, OWN_NUMBER], own[item, OWN_ENTRY] = state[OPEN_BLOCK], number, entry
                state[OWN] += 1
            if in_block == 0:
                _drop(OWN_NUMBER, number, own, state)
            _keep(cache, state, in_block, number, entry)
            codes[message] = 2 * entry + in_block
            continue
        elif role == OPENS or (role == CLOSES and buffer[at] == STOP_TAG):  # a block begins or ends
            codes[message] = in_block
            if role == OPENS:
                if in_block == 1 or size != START_BYTES or buffer[at + START_BYTES - 1] > 1:
                    return message
                _enter_block(read_32(buffer, at + 1), cache, own, state)
            elif size != 1:
                return message
            else:
                state[OPEN_BLOCK] = OUTSIDE
            blocks[0, state[BLOCKS]], blocks[1, state[BLOCKS]] = message, state[OPEN_BLOCK]
            state[BLOCKS] += 1
            continue
        elif role == CLOSES:  # a streamed transaction ends, or a part of it
            xid_at = _xid_of_end(buffer, at, stop)
            if in_block == 1 or xid_at < 0:
                return message
            xid, is_kept = read_32(buffer, xid_at), buffer[at] != ABORT_TAG
            is_whole = is_kept or read_32(buffer, xid_at + 4) == xid
            if is_whole and _end_transaction(xid, is_kept, cache, own, state):
                fact = state[DESCRIBED]
                described[0, fact], described[1, fact] = message, KEPT if is_kept else DROPPED
                described[2, fact], described[3, fact] = 0, xid
                state[DESCRIBED] += 1
            continue
        else:
            codes[message] = in_block
            if in_block == 1 and (role == ENDS or (role == MAY_END and is_aside(buffer, at, stop))):
                return message
            continue
        # For a Truncate message, a call goes on after the tables whose entries are among the codes; where it returns in
        # the middle, Python finds the relation of the next table.
        for table in range(state[TABLES], tables if tables > 1 else 1):
            number = read_32(buffer, number_at + 4 * table)
            if entry >= 0:
                _keep(cache, state, in_block & state[UNSURE], number, entry)
            else:
                _, entry = _find(cache, state, in_block, number)
                if entry < 0 and in_block > state[UNSURE]:
                    _, entry = _find(cache, state, 0, number)
                if entry < 0:
                    return message
            if tables > 1:
                codes[state[CODES]] = entry
                state[CODES] += 1
                state[TABLES] = table + 1
                entry = np.int64(-1)
        codes[message] = 2 * entry + in_block if tables <= 1 else ~(2 * (state[CODES] - tables) + in_block)
        state[TABLES] = 0
    return len(starts)
