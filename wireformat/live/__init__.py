"""A live slot: a replication connection to a server, and what it sends, in a lake.

driver, connection    psycopg or gaussdb; queries, and the replication protocol
plugins               what each output plugin is asked for
messages, intake      messages as Arrow arrays or in a file, received by a thread or by SQL functions
transaction_ends      where whole transactions end
batches               whole transactions, by size and time; larger ones in a file
snapshot              the rows that tables have before their changes
slots, checks         slots of a server; what must be right before a stream starts, in a folder
catalog_queries       parts of queries that depend on the version of the server
administration        a slot is checked, created, dropped
sink                  the lake
follower, retries     a run of `follow`, from a slot to a lake, and when it connects again or gives up
progress              how far a run has come, and what the server says meanwhile
following             `follow` and its options
"""

from __future__ import annotations

from .administration import check, create_slot, drop_slot
from .checks.findings import Finding
from .following import follow
from .progress import Progress

__all__ = ["Finding", "Progress", "check", "create_slot", "drop_slot", "follow"]


def __dir__() -> list[str]:
    return sorted(__all__)
