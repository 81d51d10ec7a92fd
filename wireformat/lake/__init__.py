"""A lake: the tables of a stream as Parquet files or Delta tables in a folder. `Capture.write` writes it.

names, columns     what a table's folder and columns are called; what is stored of its schema
store, parquet     files, whole or not there; typed rows as a Parquet file
manifest           which files belong to the lake, and its position
spill              typed rows that wait for the last ones
rejects            records that could not be read, and rows that did not fit
delta, merge       Delta tables: appended to, or kept current
lake, write        the lake as a whole, and the pass over a stream that fills it
table_writer       the part of a table in that pass
"""

from __future__ import annotations

from .listing import position, tables

__all__ = ["position", "tables"]


def __dir__() -> list[str]:
    return sorted(__all__)
