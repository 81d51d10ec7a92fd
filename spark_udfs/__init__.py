"""spark_udfs decodes logical-decoding streams on Spark: DataFrames, SQL functions, and a local session.

decode          a DataFrame of messages to a DataFrame of row changes        (dataframe)
relations       what a pgoutput capture says about its tables, for decode    (relations)
transactions    row changes of committed transactions, batch or streaming    (transactions)
open_transactions  the rows of those that have not ended                     (transactions)
register        the SQL functions, once a session                            (registration)
local_session   Spark on this machine, for tries and tests                   (session)

On the driver: dataframe, registration, session, schemas. In the workers: task, which reads; and around it one file for
each of Spark's ways to call Python: batches, frames, table_function, scalar_functions. Of transactions: chunked plans a
batch, whose workers run labels; streaming runs in the workers of a stream; transactions_function is for SQL.
"""

from __future__ import annotations

from .dataframe import decode
from .registration import register
from .relations import relations
from .session import local_session
from .transactions import open_transactions, transactions

__all__ = ["decode", "local_session", "open_transactions", "register", "relations", "transactions"]
