"""The row-change table as Arrow: schemas, the two engines that fill it, and `changes`."""

from .changes import batches, changes
from .schemas import CHANGES, change_schema

__all__ = ["CHANGES", "batches", "change_schema", "changes"]
