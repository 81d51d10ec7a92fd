"""The row-change table as Arrow: schemas, the two engines that fill it, `changes`, and committed `transactions`."""

from .changes import batches, changes
from .schemas import CHANGES, change_schema, committed_schema
from .transactions import Transactions, open_transactions, transactions

__all__ = [
    "CHANGES",
    "Transactions",
    "batches",
    "change_schema",
    "changes",
    "committed_schema",
    "open_transactions",
    "transactions",
]
