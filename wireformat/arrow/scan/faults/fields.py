"""What is wrong with a record, in numbers: a compiled walk notes it, and arrow/engine/error_texts.py words it.

A walk reads a record as its declaration does, and stops at the same byte. It says nothing of a record that it finds
nothing wrong with, or that it does not take: the declaration reads those.

    walk(
        buffer, rows, cells, text, chosen, messages, dictionary, settings, states, rule, known_bytes, begin, faults,
        texts,
    ) -> None

    buffer, rows, cells, text   as in ScanArrays
    chosen                      int64[n]: the rows of the records to look at: the scan has declined them, or has noted
                                them and found a text that is not in the encoding
    messages                    int64[n]: their messages, as indexes in the message batch
    dictionary, settings        as in ScanArrays
    states, rule, known_bytes   which bytes are text; see TextRule
    begin                       which of them is looked at first
    faults                      int64[FAULT_FIELDS, n], zeros from `begin` on, filled
    texts                       int64[TEXT_FIELDS, m], filled with the texts of which Python says whether they are good
"""

from __future__ import annotations

from typing import NamedTuple

from ...arrays import Array, Int

# Fields of a fault: what it is; the byte of the buffer where its field begins, and the byte in the field; what is
# expected and found, as numbers; how many bytes are shown; row image, cell (0: none, else its index + 1) and field.
FAULT, AT, INSIDE, EXPECTED, GOT, SHOWN, IMAGE, CELL, FIELD = range(9)
SCHEMA, TABLE = 9, 11  # pairs, see notes.py; the length is -1 if the names are not known
SAYS_TABLE = 13  # 1 if the error names the table; the filters look at it anyway
RELATION_ID = 14  # of a row whose relation the scan does not know; else -1
LISTED = 15  # how many texts are listed with those of the record; it may be more than there is room for
FAULT_FIELDS = 16

# Fields of a listed text, which may be in the text of the notes; see notes.py. TEXT_AT and TEXT_INSIDE are what AT and
# INSIDE are if its first byte is wrong; TEXT_INSIDE may be LEFT_TO_DECLARATION. The others are as in a fault.
OWNER, START, LENGTH, TEXT_AT, TEXT_INSIDE, TEXT_IMAGE, TEXT_CELL, TEXT_FIELD, TEXT_SAYS_TABLE = range(9)
TEXT_FIELDS = 9

LEFT_TO_DECLARATION = -1
"""If the text is wrong, the declaration reads the record."""

NO_FAULT, BAD_TEXT, SHORT, BAD_LENGTH, BAD_FIELD_TAG, BAD_CELL_TAG, NO_CELL, TRAILING, WRONG_COUNT, UNKNOWN = range(10)
BAD_KIND, EMPTY = 10, 11
FAULTS = 12
"""Faults. UNKNOWN is a row of an unknown relation, WRONG_COUNT one that has more or fewer cells than its relation.
EMPTY is a message without bytes, which no walk is given."""

FIELDS = (
    *("", "table_schema", "table_name", "tag", "cells", "name", "type_oid", "value", "cell", "relation_id"),
    *("type", "op_type"),
)
IN_SCHEMA, IN_NAME, IN_TAG, IN_CELLS, IN_CELL_NAME, IN_OID, IN_VALUE, IN_CELL, IN_RELATION_ID = range(1, 10)
IN_TYPE, IN_KIND = range(10, len(FIELDS))

IMAGES = ("", "new", "old")
IN_NEW, IN_OLD = range(1, len(IMAGES))

STATES_TEXT, ANY_TEXT, OTHER_TEXT = range(3)
"""Which bytes are text: those that a table of states accepts; all, as wrong ones are replaced; those of an encoding
without such a table: texts that are not ASCII are listed, up to what else is wrong with the record."""


class TextRule(NamedTuple):
    """Which bytes are text."""

    which: Int
    """STATES_TEXT, ANY_TEXT or OTHER_TEXT"""
    states: Array
    """uint8[states, 256]: the next state of a walk over a text; see wireformat/arrow/scan/text_states.py"""
    known_bytes: Int
    """how many bytes the text of the notes begins with that are in UTF-8, such as the names of relations"""
