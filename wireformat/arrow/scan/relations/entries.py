"""A relation as entries of the dictionary: a table with the columns of one row image."""

from __future__ import annotations

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
