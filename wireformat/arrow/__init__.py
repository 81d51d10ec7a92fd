"""The row-change table as Arrow: schemas, the two engines that fill it, `changes`, `transactions`, and typed tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .changes import batches, changes
from .schemas import CHANGES, change_schema, committed_schema

if TYPE_CHECKING:
    from .committed import Transactions, open_transactions, transactions
    from .table_list import tables
    from .typed_table import typed

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

_LATER = {
    "Transactions": "committed",
    "open_transactions": "committed",
    "tables": "table_list",
    "transactions": "committed",
    "typed": "typed_table",
}
"""Names that are loaded when they are first used, and where they lie: to decode, nobody needs what they load."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)
