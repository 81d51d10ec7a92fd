"""The row-change table as Arrow: schemas, the two engines that fill it, `changes`, `transactions`, and typed tables."""

from .changes import batches, changes
from .schemas import CHANGES, change_schema, committed_schema
from .tables import tables
from .transactions import Transactions, open_transactions, transactions
from .typed import typed

__all__ = [
    "CHANGES",
    "Transactions",
    "batches",
    "change_schema",
    "changes",
    "committed_schema",
    "open_transactions",
    "tables",
    "transactions",
    "typed",
]
