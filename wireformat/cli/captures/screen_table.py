"""Rows as a table on the screen."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ...printable import printable
from ..screen import console
from ..table_writers import cell_texts


def print_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int | None = None) -> bool:
    """Prints rows to standard output; returns whether there are more.

    most   the number of rows to print; None for all
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for field in schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(Text(printable(field.name)), justify="right" if is_number else "left", overflow="fold")
    left, has_more = most, False
    for batch in batches:
        if left is not None and len(batch) > left:
            batch, has_more = batch.slice(0, left), True
        columns = [cell_texts(column) for column in batch.columns]
        for cells in zip(*columns, strict=True):
            table.add_row(*(Text(printable(cell)) for cell in cells))
        left = None if left is None else left - len(batch)
        if has_more:
            break
    console().print(table)
    return has_more
