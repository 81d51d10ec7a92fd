"""The two engines behind one interface, and the one place that chooses between them."""

from __future__ import annotations

from ...formats.base import Format
from ...formats.registry import find_row
from ...grammar.tuple_text import CHANGES
from ...options import ReadOptions
from ...options.checks import one_of
from .declaration_engine import DeclarationEngine
from .interface import Engine
from .order_check import OrderChecked
from .parallel import checked_threads
from .scan_engine import ScanEngine

ENGINES: dict[str, type[ScanEngine] | type[DeclarationEngine]] = {"scan": ScanEngine, "declaration": DeclarationEngine}


_MARKS = tuple(mark.decode() for mark in CHANGES)


def make_engine(format: Format, options: ReadOptions, name: str = "scan", threads: int | None = 1) -> Engine:
    """The engine of this name: scan, unless somebody wants to compare. Raises OptionError.

    threads     how many of them the scan may use to make record batches; None: as many as Arrow

    A format without a scan is read by its declaration, whatever the name; so is gaussdb-text where a known table is
    named like a mark, since the scan takes the first mark for one.
    """
    one_of("engine", name, tuple(ENGINES))
    odd = any(mark in f" {table} " for names in options.known_tables for table in names for mark in _MARKS)
    engine = ENGINES["declaration" if odd or find_row(format.name).scan is None else name]
    count = checked_threads(threads)
    if not (options.strict or options.exclude_users or options.skip_empty_xacts):
        return engine(format, options, count)
    from .transaction_filter import FilteredTransactions  # loads pyarrow.compute

    whole = engine(format, options.all_kinds(), count)
    return FilteredTransactions(OrderChecked(whole, format.name) if options.strict else whole, options)
