"""Errors about the positions of rows: null, not unique, or out of order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

import wireformat as wf


def check_positions(columns: Iterable[pa.Array], names: Iterable[str]) -> None:
    """Raises BadRows if one of these columns has a null, because the position of such a row is unknown."""
    empty = [name for name, column in zip(names, columns, strict=True) if column.null_count]
    if empty:
        raise no_position(empty)


def no_position(empty: Sequence[str]) -> wf.BadRows:
    """Returns the error for a row that has null in these columns."""
    got = f"a row that has no {' and no '.join(empty)}"
    return wf.BadRows("a value in every column of order_by and stream_by", got)


def not_unique(got: str) -> wf.BadRows:
    """Returns the error for two rows or messages with the same position."""
    hint = "add a column to order_by, or to stream_by if there are several streams"
    return wf.BadRows("positions that are unique within a stream", got, hint=hint)


def out_of_order(expected: str, got: str) -> wf.OrderError:
    """Returns the error for rows that do not come in the order of their positions."""
    return wf.OrderError(expected, got, state="rows of one stream", open="")
