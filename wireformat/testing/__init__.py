"""A test double of a server: a stream of events that is consistent, and the tables as they are at its end.

`server` makes the events, and knows what the tables hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import OptionError
from ..events import Event
from ..formats.adapt import adapted
from ..formats.registry import find_row
from ..options.checks import flag, number, shown
from ..options.keywords import checks_keywords
from .server import COLUMNS, Column, Server, StreamRecipe, Table, Values, check_table

__all__ = ["Column", "Stream", "Table", "Values", "stream"]


def __dir__() -> list[str]:
    return sorted(__all__)


_MOST_TABLES = 1_000_000
_MOST_CHANGES = 100_000_000
"""A transaction is made as a whole."""

_ABILITIES: dict[str, frozenset[str]] = {
    "parallel": frozenset(),
    "serial": frozenset({"truncate"}),
    "text": frozenset({"truncate", "prepared"}),
    "pgoutput": frozenset({"truncate", "prepared", "streamed", "relations"}),
}
"""What streams of each family of orders can say with all facts; see FormatRow.order."""


@checks_keywords
def stream(
    tables: int | Sequence[Table] = 4,
    transactions: int = 100,
    *,
    seed: int = 0,
    format: str = "pgoutput",
    changes: int = 10,
    schema_changes: bool = True,
) -> Stream:
    """Returns a stream of events as a server sends them in this format, always the same for the same arguments.

    tables           how many tables, or which ones
    transactions     how many begin
    format           decides what occurs: streamed transactions in `pgoutput`, prepared ones there and in
                     `test-decoding`, TRUNCATE in all but the parallel styles
    changes          the most row changes of a transaction
    schema_changes   whether tables get more columns, and integer columns become bigint

    Rows that change exist, and are not changed by two open transactions at a time. Some transactions abort: of them,
    servers send only what was streamed or prepared before. Raises OptionError when called.
    """
    row = find_row(format)
    if isinstance(tables, int):
        names = (f"orders_{index}" for index in range(number("tables", tables, 1, _MOST_TABLES)))
        tables = [Table("shop", name, COLUMNS, ("default", "full")[index % 4 == 3]) for index, name in enumerate(names)]
    given: Any = tables
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise OptionError(f"option tables: expected a number or a list of tables, got {shown(given)}")
    for table in tables:
        check_table(table)
    if len({table[:2] for table in tables}) < len(tables) or not tables:
        raise OptionError("option tables: expected at least one table, no two of the same name")
    if not isinstance(seed, int):
        raise OptionError(f"option seed: expected a whole number, got {shown(seed)}")
    plan = StreamRecipe(
        tuple(tables),
        number("transactions", transactions, 0),
        seed,
        number("changes", changes, 1, _MOST_CHANGES),
        flag("schema_changes", schema_changes),
        _ABILITIES[row.order] | ({"unsent"} if "unsent values" not in row.cannot_say else set()),
        "types" in row.cannot_say,
        row.order,
    )
    return Stream(row.name, plan)


@dataclass(frozen=True)
class Stream:
    """A stream of events. Each iteration makes the same events again; none of them are kept."""

    format: str
    _plan: StreamRecipe
    _ends: list[dict[tuple[str, str], list[Values]]] = field(default_factory=list, repr=False, compare=False)

    def __iter__(self) -> Iterator[Event]:
        """Yields the events."""
        server = Server(self._plan)
        events = server.events()
        if self._plan.is_adapted:
            events = (adapted(event, self.format)[0] for event in events)
        yield from events
        self._ends[:] = [server.rows()]

    @property
    def tables(self) -> Mapping[tuple[str, str], list[Values]]:
        """The rows of each table at the end, by schema and name: column name to the text of the value, in the order of
        the keys as texts."""
        if not self._ends:
            for _ in self:
                pass
        return self._ends[0]
