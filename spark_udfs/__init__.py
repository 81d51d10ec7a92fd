"""spark_udfs decodes logical-decoding streams on Spark: DataFrames, SQL functions, and a local session.

capture         the questions of wireformat.Capture about a DataFrame of raw messages (capture, chunks, streams)
decode          a DataFrame of messages to a DataFrame of row changes        (dataframe)
latest          the current rows of a table, from its typed changes          (latest)
change_reader   a function of a pandas Series to a DataFrame of row changes  (frame_readers)
typed_reader    the same, to the typed changes of one table                  (frame_readers)
arrow_results   lets your pandas function return Arrow columns               (unconverted)
register        the SQL functions, once a session                            (registration)
local_session   a Spark session on this machine                              (session)

The driver runs dataframe, registration, session and schemas. The workers run task, which decodes, and one file for each
way in which Spark calls Python: batches, frames, table_function, scalar_functions, transactions_function.
For latest, typed_rows reads the columns; latest_by_key and latest_by_row are the two ways to identify rows.
"""

from __future__ import annotations

from wireformat.extras import needs

with needs("spark", "spark_udfs"):
    import pyspark  # noqa: F401 - before other packages, so that the error names the extra

    from .capture import Capture, capture
    from .dataframe import decode
    from .frame_readers import change_reader, typed_reader
    from .latest import latest
    from .registration import register
    from .session import local_session
    from .unconverted import arrow_results

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
