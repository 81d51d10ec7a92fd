"""A lake: the tables of a stream as Parquet files or Delta tables in a folder. `Capture.write` writes it.

options, result        what a write is given, and what it returns
write, table_writer    the pass over a stream that fills a lake, and the part of one table in it
lake, listing          the lake as a whole, while it is written and for its readers
names, stored          the names of folders and columns, and the schema of a table as it is stored
store, parquet         files that are whole or not there, and typed rows as a Parquet file
manifest               which files belong to the lake, and its position
delta, merge           Delta tables: rows are appended or merged
spill                  typed rows that wait for the last ones
rejects                records that could not be read, and rows that did not fit
chunks                 a lake that many tasks write to
"""

from __future__ import annotations

from .listing import position, tables

__all__ = ["position", "tables"]


def __dir__() -> list[str]:
    return sorted(__all__)
