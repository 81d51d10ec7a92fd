"""The dictionary: the texts that notes refer to. Kinds, keys of `detail`, tokens and type names are constant.

The entries of a relation follow: a table with the columns of one row image.
"""

from __future__ import annotations

import numpy as np

from ...options.reading import KINDS
from ...pgtypes import SQL_NAMES
from ..arrays import Array
from ..schemas import DETAIL_KEYS
from .tokens import TOKENS

FIRST_LSN, COMMIT_TIME_KEY, ORIGIN, USERNAME = range(4)
END_LSN_KEY, OLD_KEY, RELATION_ID_KEY = (DETAIL_KEYS.index(key) for key in ("end_lsn", "old", "relation_id"))
WAL_END_KEY, WAL_FLUSHED_KEY, TIME_KEY, REPLY_KEY = (
    DETAIL_KEYS.index(key) for key in ("wal_end", "wal_flushed", "time", "reply")
)
CONTENT_KEY, PREFIX_KEY, SIZE_KEY, TRANSACTIONAL_KEY, BINARY_KEY = (
    DETAIL_KEYS.index(key) for key in ("content", "prefix", "size", "transactional", "binary")
)
SQL_KEY, RELID_KEY, CMDTYPE_KEY, OWNER_KEY = (DETAIL_KEYS.index(key) for key in ("sql", "relid", "cmdtype", "owner"))
GID_KEY, PREPARE_TIME_KEY, FIRST_SEGMENT_KEY, SUBXID_KEY = (
    DETAIL_KEYS.index(key) for key in ("gid", "prepare_time", "first_segment", "subxid")
)
RESTART_IDENTITY_KEY, CASCADE_KEY, TYPE_OIDS_KEY = (
    DETAIL_KEYS.index(key) for key in ("restart_identity", "cascade", "type_oids")
)

# The first entry of kinds, of detail keys, of tokens, and of type names, which are in the order of the type OIDs.
FIRST_KIND = 0
FIRST_KEY = len(KINDS)
FIRST_TOKEN = FIRST_KEY + len(DETAIL_KEYS)
FIRST_TYPE = FIRST_TOKEN + len(TOKENS)


def token_entry(token: bytes) -> int:
    """The entry of a token in DICTIONARY."""
    return FIRST_TOKEN + TOKENS.index(token)


TYPE_TABLE_SIZE = 1 << 14
"""PostgreSQL gives numbers below 16384 to built-in types; others are not in the catalogue."""


def _make_dictionary() -> tuple[Array, Array]:
    text = bytearray()
    dictionary = np.zeros((FIRST_TYPE + TYPE_TABLE_SIZE, 2), np.int32)
    names = [name.encode() for name in (*KINDS, *DETAIL_KEYS)]
    types = [(FIRST_TYPE + oid, name.encode()) for oid, name in SQL_NAMES.items()]
    for entry, constant in [*enumerate((*names, *TOKENS)), *types]:
        dictionary[entry] = ~len(text), len(constant)
        text += constant
    return dictionary, np.frombuffer(bytes(text), np.uint8)


DICTIONARY, DICTIONARY_TEXT = _make_dictionary()
"""DICTIONARY: int32[n, 2], the pair of each constant text; length 0 for type OIDs that are in no catalogue."""

COLUMNS, SCHEMA, TABLE, DETAILS = range(4)
DETAIL_COUNT = 6
CELLS = DETAILS + DETAIL_COUNT
"""A relation in the dictionary. COLUMNS is no pair: the number of columns, and whether the filters keep the table. Then
the names of schema and table. Of pgoutput: what `detail` says of the relation, from the OID on, in the order of its
keys. From CELLS on there are CELL_ENTRIES for each column."""

NEXT, HEAD, TAIL = range(DETAILS, DETAILS + 3)
"""The entries of a learned relation in place of details. NEXT is no pair: another relation of the table or 0, and in
the first one their number. HEAD and TAIL are patterns."""

CELL_NAME, CELL_TYPE, CELL_FACTS, CELL_QUOTED, CELL_ENTRIES = range(5)
"""CELL_FACTS is the pattern before a value. Of pgoutput it is no pair: whether the column is in the key, and the form
of its binary values; see forms.py. CELL_QUOTED is the name as a string of JSON, if these have no text form."""

UNDECIDED, WANTED, UNWANTED = range(3)
"""Whether the filters keep the rows of a table; it is decided by its first row."""
