"""spark_udfs decodes logical-decoding streams on Spark: DataFrames, SQL functions, and a local session.

decode          a DataFrame of messages to a DataFrame of row changes        (dataframe)
relations       what a pgoutput capture says about its tables, for decode    (relations)
transactions    row changes of committed transactions, batch or streaming    (transactions)
open_transactions  the rows of those that have not ended                     (transactions)
unknown_prepared  prepared ones whose end came without their PREPARE         (transactions)
tables          which tables there are, with their columns over time         (tables)
typed           the changes of one table, with its columns                   (typed)
latest          the rows of a table after its typed changes                  (latest)
register        the SQL functions, once a session                            (registration)
local_session   Spark on this machine, for tries and tests                   (session)

On the driver: dataframe, registration, session, schemas. In the workers: task, which reads; and around it one file for
each of Spark's ways to call Python: batches, frames, table_function, scalar_functions. Of transactions: chunked plans a
batch, whose workers run labels; streaming runs in the workers of a stream; transactions_function is for SQL. Of latest:
typed_rows reads the columns, latest_by_key and latest_by_row are the two ways to tell rows apart.
"""

from __future__ import annotations

from wireformat.extras import needs

with needs("spark", "spark_udfs"):
    from .dataframe import decode
    from .latest import latest
    from .registration import register
    from .relations import relations
    from .session import local_session
    from .tables import tables
    from .transactions import open_transactions, transactions, unknown_prepared
    from .typed import typed

__all__ = [
    "decode",
    "latest",
    "local_session",
    "open_transactions",
    "register",
    "relations",
    "tables",
    "transactions",
    "typed",
    "unknown_prepared",
]
