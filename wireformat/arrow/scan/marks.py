"""The bytes that the scans of the text styles compare with, by what they are for."""

from __future__ import annotations

from ...grammar import lines
from ...grammar.json_text import ARRAYS
from ...grammar.tuple_text import NEW_TUPLE, NO_TUPLE, OLD_KEY

_LINES = (*lines.PARALLEL, *lines.MPPDB, *lines.TEST_DECODING, *lines.POSTGRES_FREQUENT)

JSON_HEAD, JSON_KIND, JSON_END = b'{"table_name":"', b'","op_type":"', b"]}"
JSON_ARRAYS = tuple(f'{end},"{key}":['.encode() for key, end in zip(ARRAYS, ('"', *"]]]]]"), strict=True))
"""What stands before each array: the end of the one before it, and the key."""

TABLE = b"table "
ROW_CHANGES = (b" INSERT:", b" UPDATE:", b" DELETE:")

NULL, TRUE, FALSE, UNCHANGED = b"null", b"true", b"false", b"unchanged-toast-datum"
NUMBER_WORDS = (b"NaN", b"Infinity", b"-Infinity")
LITERALS = (NULL, TRUE, FALSE, UNCHANGED, *NUMBER_WORDS)
"""Values that stand as words, without quotes."""

KEY_ROW, FULL_ROW = b"key", b"full"
"""What an old row holds."""

BOOLEANS = (b"t", b"f")
"""What true and false are in the table."""

MARKS = tuple(
    dict.fromkeys(
        [
            *(mark for line in _LINES for part in line.parts for mark in (part.before, *part.also, part.after) if mark),
            *(line.word for line in _LINES),
            *JSON_ARRAYS,
            *ROW_CHANGES,
            *LITERALS,
            *BOOLEANS,
            *(KEY_ROW, FULL_ROW),
            *(JSON_HEAD, JSON_KIND, JSON_END, TABLE, NO_TUPLE, OLD_KEY, NEW_TUPLE),
        ]
    )
)
"""All of them, each once. JSON_ARRAYS, ROW_CHANGES and LITERALS stand in their order, one behind the other."""
