"""A lake: the tables of a stream as Parquet files or Delta tables in a folder. `Capture.write` writes it.

options, result             what a write is given, and what it returns
write, table_writer         the pass over a stream that fills a lake, and what it does with each table
lake, listing               the lake while it is written, and for its readers
table_folder, partitions    the files of one table in a write, and how they are divided into folders
parquet, spill              typed rows in a Parquet file, and in temporary files until all are known
rejects                     records that could not be read, and rows that did not fit
chunks                      a lake that many tasks write to

stored                      the manifest, names and files in the folder of a lake
delta                       Delta tables: rows are appended, replaced or merged
"""

from __future__ import annotations

from .listing import position, tables

__all__ = ["position", "tables"]


def __dir__() -> list[str]:
    return sorted(__all__)
