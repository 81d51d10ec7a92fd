"""The two engines, and the function that chooses between them."""

from __future__ import annotations

from ...formats.base import Format
from ...formats.registry import find_row
from ...grammar.tuple_text import CHANGE_OF_MARK
from ...options import ReadOptions
from ...options.checks import one_of
from ...stream.records_before import NOTHING_BEFORE, RecordsBefore
from .declaration_engine import DeclarationEngine, Engine
from .scan_engine import ScanEngine, checked_threads

ENGINES: dict[str, type[ScanEngine] | type[DeclarationEngine]] = {"scan": ScanEngine, "declaration": DeclarationEngine}


_CHANGE_TOKENS = tuple(token.decode() for token in CHANGE_OF_MARK)
"""What follows a table's name in gaussdb-text, such as ` INSERT:`."""


def make_engine(
    format: Format,
    options: ReadOptions,
    name: str = "scan",
    threads: int | None = 1,
    needed: ReadOptions | None = None,
    before: RecordsBefore = NOTHING_BEFORE,
) -> Engine:
    """Returns the engine with this name; raises OptionError.

    threads   how many threads the scan uses to make record batches; None for as many as Arrow uses
    needed    options whose `tables` are those whose rows are needed. Rows of other tables are only counted, so that
              their cells may be bad
    before    the records before the first one; `strict` and the filters of whole transactions need them

    A format without a scan is read by its declaration, whatever the name. So is gaussdb-text if the name of a known
    table contains a token such as ` INSERT:`, since the scan ends the name at the first token.
    """
    one_of("engine", name, tuple(ENGINES))
    has_token = any(
        token in f" {table} " for names in options.known_tables for table in names for token in _CHANGE_TOKENS
    )
    make = ENGINES["declaration" if has_token or find_row(format.name).scan is None else name]
    count = checked_threads(threads)
    if not (options.strict or options.exclude_users or options.skip_empty_xacts):
        return make(format, options, count, needed)
    from .transaction_filter import FilteredTransactions  # loads pyarrow.compute

    engine: Engine = make(format, options.all_kinds(), count, needed)
    if options.strict:
        from .order_check import OrderChecked

        engine = OrderChecked(engine, format.name, before)
    is_filtered = options.exclude_users or options.skip_empty_xacts or options.kinds is not None
    return FilteredTransactions(engine, options, before) if is_filtered else engine
