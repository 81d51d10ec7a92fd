"""The row-change table as Arrow: schemas, the two engines that fill it, `changes`, and typed tables out of it."""

from .changes import batches, changes
from .schemas import CHANGES, change_schema
from .tables import tables
from .typed import typed

__all__ = ["CHANGES", "batches", "change_schema", "changes", "tables", "typed"]
