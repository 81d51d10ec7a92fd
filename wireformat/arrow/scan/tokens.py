"""The tokens of the text styles: constant bytes that their scans compare with."""

from __future__ import annotations

from ...events import LITERAL_TYPES
from ...grammar import lines, messages
from ...grammar.ddl_lines import MESSAGE_DDL, MPPDB_DDL, OBJECTS, OWNER
from ...grammar.json_text import ARRAYS
from ...grammar.sql_text import AND, COMMA, DELETE, EQUALS, INSERT, VALUES, WHERE
from ...grammar.table_text import FLAGS, MARK, NO_FLAGS
from ...grammar.tuple_text import CHANGE_OF_MARK, NEW_TUPLE, NO_TUPLE, OLD_KEY, TABLE

_LINES = (*lines.PARALLEL, *lines.MPPDB, *lines.TEST_DECODING, *lines.SQL, *lines.POSTGRES_SCANNED)

JSON_HEAD, JSON_KIND, JSON_END = b'{"table_name":"', b'","op_type":"', b"]}"
JSON_ARRAYS = tuple(f'{end},"{key}":['.encode() for key, end in zip(ARRAYS, ('"', *"]]]]]"), strict=True))
"""What comes before each array: the end of the previous array, and the key."""

KIND_BYTES = len("INSERT")
"""The kinds of row changes have as many letters."""

CHANGE_MARKS = tuple(CHANGE_OF_MARK)

NULL, TRUE, FALSE, UNCHANGED = b"null", b"true", b"false", b"unchanged-toast-datum"
SPECIAL_NUMBERS = (b"NaN", b"Infinity", b"-Infinity")
LITERALS = (NULL, TRUE, FALSE, UNCHANGED, *SPECIAL_NUMBERS)
"""Values that are written without quotes and are not plain numbers."""

FORMS = tuple(
    f"{LITERAL_TYPES}{form}".encode() for form in ("null", "boolean", "number", "bits", "string", "unchanged")
)
"""What stands for the types of sql-decoding: how each value was written."""

LAST_COMMA = b", )"
"""The end of an INSERT of sql-decoding where the last columns were dropped."""

COLUMN_NUMBERS = tuple(b"$%d" % number for number in range(1, 1601))
"""The names of columns in an INSERT of sql-decoding. No server has tables of more columns."""

KEY_ROW, FULL_ROW = b"key", b"full"
"""What an old row holds."""

BOOLEANS = (b"t", b"f")
"""What true and false are in the table."""

MESSAGE_HEAD, STREAMED_MESSAGE_HEAD = messages.MESSAGE, messages.STREAMED
MESSAGE_WORDS = tuple(head[: head.index(b":") + 1] for head in (MESSAGE_HEAD, STREAMED_MESSAGE_HEAD))
TABLE_WORD, TRUNCATE_MARK = TABLE.rstrip(), MARK.lstrip(b":")
TRUNCATE_FLAGS = tuple(FLAGS.values())
DDL_LINES = (MPPDB_DDL, MESSAGE_DDL)
DDL_OWNER = OWNER
DDL_OBJECTS = tuple(head + b": " for head in OBJECTS)
DDL_OBJECT_WORDS = tuple(head.rstrip() for head in DDL_OBJECTS)
MESSAGE_PREFIX, MESSAGE_SIZE, MESSAGE_CONTENT = b" prefix: ", b", sz: ", b" content:"
CONTENT_IS_BINARY = b'["content"]'
"""What `detail` says of a message whose content is no text."""

TOKENS = tuple(
    dict.fromkeys(
        [
            *(
                token
                for line in _LINES
                for part in line.parts
                for token in (part.before, *part.also, part.after)
                if token
            ),
            *(line.word for line in _LINES),
            *JSON_ARRAYS,
            *CHANGE_MARKS,
            *LITERALS,
            *BOOLEANS,
            *FORMS,
            *(INSERT, DELETE, VALUES, WHERE, AND, EQUALS, COMMA, LAST_COMMA),
            *COLUMN_NUMBERS,
            *(KEY_ROW, FULL_ROW),
            *(JSON_HEAD, JSON_KIND, JSON_END, TABLE, NO_TUPLE, OLD_KEY, NEW_TUPLE),
            *MESSAGE_WORDS,
            *(token for line in DDL_LINES for token in (line.head.rstrip(), line.content, line.sql)),
            *(part.before for line in DDL_LINES for part in line.parts),
            *(DDL_OWNER, *DDL_OBJECTS, *DDL_OBJECT_WORDS),
            *(TABLE_WORD, TRUNCATE_MARK, NO_FLAGS, *TRUNCATE_FLAGS),
            *(MESSAGE_HEAD, STREAMED_MESSAGE_HEAD, MESSAGE_PREFIX, MESSAGE_SIZE, MESSAGE_CONTENT, CONTENT_IS_BINARY),
        ]
    )
)
"""All tokens, each once. JSON_ARRAYS, CHANGE_MARKS, LITERALS and COLUMN_NUMBERS each are one range, in their order."""
