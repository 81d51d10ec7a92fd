"""spark_udfs decodes logical-decoding streams on Spark: DataFrames, SQL functions, and a local session.

capture         the questions of wireformat.Capture about a DataFrame of raw messages (capture, chunks, streams)
decode          a DataFrame of messages to a DataFrame of row changes        (decoding)
latest          the current rows of a table, from its typed changes          (tables)
change_reader   a function of a pandas Series to a DataFrame of row changes  (decoding)
typed_reader    the same, to the typed changes of one table                  (decoding)
arrow_results   lets your pandas function return Arrow columns               (decoding)
register        the SQL functions and the data source, once a session        (sql, source)
local_session   a Spark session on this machine                              (session)

The driver runs capture, decoding/dataframe, sql, session and schemas. The workers run decoding/task, which
decodes, and one file for each way in which Spark calls Python: decoding/batches, sql/functions, chunks/reading,
chunks/questions, chunks/writing, streams/processor and source/reader.
"""

from __future__ import annotations

from wireformat.errors import needs

with needs("spark", "spark_udfs"):
    import pyspark  # noqa: F401 - before other packages, so that the error names the extra

    from .capture import Capture, capture
    from .decoding.dataframe import decode
    from .decoding.frame_readers import change_reader, typed_reader
    from .decoding.unconverted import arrow_results
    from .session import local_session
    from .sql import register
    from .tables.latest import latest

__all__ = [
    "Capture",
    "arrow_results",
    "capture",
    "change_reader",
    "decode",
    "latest",
    "local_session",
    "register",
    "typed_reader",
]


def __dir__() -> list[str]:
    return sorted(__all__)
