"""The row-change table as Arrow: schemas, the two engines that fill it, `changes`, `transactions`, and typed tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .change_table import batches, changes
    from .committed.assembler import Transactions, open_transactions, transactions
    from .schemas import CHANGES, change_schema, committed_schema
    from .typed_tables.latest import latest
    from .typed_tables.table import typed
    from .typed_tables.tables import tables
    from .written.encode import encode

__all__ = [
    "CHANGES",
    "Transactions",
    "batches",
    "change_schema",
    "changes",
    "committed_schema",
    "encode",
    "latest",
    "open_transactions",
    "tables",
    "transactions",
    "typed",
]

_LATER = {
    "CHANGES": "schemas",
    "batches": "change_table",
    "change_schema": "schemas",
    "changes": "change_table",
    "committed_schema": "schemas",
    "Transactions": "committed.assembler",
    "encode": "written.encode",
    "latest": "typed_tables.latest",
    "open_transactions": "committed.assembler",
    "tables": "typed_tables.tables",
    "transactions": "committed.assembler",
    "typed": "typed_tables.table",
}
"""Names that are loaded when they are first used, and where they are: the schemas need no numba, and light modules of
this package, such as `arrays`, need no pyarrow."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*__all__])
