"""Every limit of the package, each a named number with its reason."""

RECORD_BYTES = 0x3FFFFFFF
"""Longest record: the servers' largest allocation (MaxAllocSize, 1 GiB - 1), so none sends more."""

MESSAGE_BYTES = 0x7FFFFFFF
"""Longest message: positions in it are kept as int32, and one Arrow string column holds 2 GiB. A batch is closed at
1 MiB and overshoots by at most one record, so real messages stay below."""

SENDER_BATCH_BYTES = 1 << 20
"""A sender closes a batch once it is longer than this (sending-batch=1): GaussDB document, 1 MiB."""

MESSAGE_BATCH_BYTES = 16 << 20
"""How many bytes of messages the scan takes at once, as one message batch: large enough to make the calls free, also
where it steps over most rows, small enough that memory stays constant however long the input is. MESSAGE_BATCH_CELLS
keeps the notes near the cache."""

STEPPED_TIMES = 4
"""How many times as large message batches are, of all threads together, whose rows are mostly stepped over, so that few
are noted. What a batch costs besides its rows is then paid less often. Messages in smaller arrays are copied for it."""

TABLE_PARTS = 2
"""Into how many parts a message batch is cut whose rows become record batches: these take some times as much memory as
their messages, in each thread."""

MESSAGE_BATCH_CELLS = 1 << 18
"""How many cells the scan notes at once. One row has at most 2 x 65535 of them, so any row fits; with type names of at
most some dozen bytes each no Arrow column of them comes near 2 GiB."""

MESSAGE_BATCH_ROWS = 1 << 17
"""How many rows the scan notes at once: bounds the notes for messages made of the smallest records (14 bytes)."""

BATCH_TEXT_BYTES = 1 << 28
"""How much text a column of a record batch may hold before its rows are split: names of columns are repeated in every
row, so a few bytes of a message may be many of a table. A row that has more is a batch of its own."""

COLUMN_BYTES = 0x7FFFFFFE
"""How much text a column of a record batch can hold: Arrow's offsets are int32, and its builders take one byte less."""

SPOT_BYTES = 16
"""How many bytes an error shows of the field that it is about."""

NAME_BYTES = 255
"""Longest name of a schema or table in gaussdb-text, where a mark after it says where it ends: servers cut names at 63
bytes (NAMEDATALEN), and this has room for those built with longer ones. It bounds the positions that are tried."""

DDL_DEPTH = 64
"""How deep the objects of a DDL template may lie in each other; those of servers stay below ten."""

DDL_ELEMENTS = 1 << 18
"""How many elements a DDL template may print: a table of 1600 columns has some 10,000."""

DDL_CHARACTERS = 1 << 26
"""How many characters a DDL template may print, counted again at each depth: more than any function's body has."""

DDL_DIGITS = 131072
"""Largest exponent of a number in a DDL template: that of the servers' type numeric."""

PATH_CHARACTERS = 200
"""How much of a path an error shows where the names in it come from the input."""

STREAMED_TRANSACTIONS = 1 << 18
"""How many streamed transactions may be in progress at once where the order is checked: PostgreSQL allows no more
backends than this (MAX_BACKENDS)."""

PREFIX_BYTES = 1 << 16
"""Longest prefix of a message of test-decoding that is looked for in a file, where nothing but the size after it says
where it ends: prefixes are names of applications. It bounds the positions that are tried."""

OPEN_TRANSACTIONS_BYTES = 256 << 20
"""The default for how many bytes of rows of open transactions are held in memory; more go to files. Servers
begin to stream a transaction at 64 MiB (logical_decoding_work_mem), so some large ones fit."""
