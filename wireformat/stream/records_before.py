"""What records mean for those after them in other parts of a stream, to `strict` and the filters of transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..events import RecordFacts


def index_of_message(message: int) -> str:
    """Returns how an error names a message, unless it has a better name."""
    return f"message {message}"


class OrderBefore(NamedTuple):
    """The state of the order check; see wireformat.stream.order.

    open, streamed   as Order has them, with what names a message in place of its index
    """

    state: str
    open: tuple[RecordFacts, str] | None
    streamed: Mapping[int | None, str]


class FilterBefore(NamedTuple):
    """The state of the filters of whole transactions; see wireformat.stream.transaction_filter.

    is_excluded   whether the open transaction is left out
    held          the number of records that wait for what follows them
    block         the xid of the block whose opening waits
    has_changes   whether records of a streamed transaction were kept, by xid
    """

    is_excluded: bool
    held: int
    block: int | None
    has_changes: Mapping[int, bool]


class RecordsBefore(NamedTuple):
    """What the records before a part of a stream mean for those of the part.

    order        None at the beginning of a stream, or without `strict`
    filter       None at the beginning of a stream, or without filters of whole transactions
    keeps_held   whether records of the part that wait at its end are kept, as later records decide
    name         returns what names a message of the part in errors, by its index
    held_rows    the records that wait, as rows whose messages are 0, 1, …; the messages of the part are counted after
                 them. None: they are another part's, which returns them
    """

    order: OrderBefore | None = None
    filter: FilterBefore | None = None
    keeps_held: bool = False
    name: Callable[[int], str] = index_of_message
    held_rows: Any = None


NOTHING_BEFORE = RecordsBefore()
"""At the beginning of a stream, or where no option needs more."""
