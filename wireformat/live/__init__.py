"""A live slot: a replication connection to a server, and what it sends, in a lake.

driver, connection    psycopg or gaussdb; queries, and the replication protocol
plugins               what each output plugin is asked for, and where its transactions end
intake, batches       messages as Arrow arrays, by a thread; whole transactions, by size and time
slots, checks         slots of a server; what must be right before a stream starts
following, progress   from a slot to a lake; how far it is
"""

from __future__ import annotations

from .following import follow
from .progress import Progress

__all__ = ["Progress", "follow"]
