"""What a user writes, with the types that a type checker must see in the installed wheel."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import wireformat as wf
from wireformat.testing import Stream, stream

if sys.version_info >= (3, 11):
    from typing import assert_type
else:

    def assert_type(value: object, kind: object) -> None:
        """For the checker of an older Python."""


def names(messages: list[bytes]) -> Iterator[str]:
    """Yields the tables of the row changes."""
    for event in wf.decode(messages, "pgoutput", mode="PERMISSIVE"):
        assert_type(event, wf.Event)
        if isinstance(event, wf.RowChange):
            assert_type(event.table_name, str)
            yield event.table_name


def main() -> None:
    """Reads and writes a made-up stream, as events and as Arrow tables."""
    made = stream(tables=2, transactions=5, seed=1, format="pgoutput")
    assert_type(made, Stream)
    messages = list(wf.encode(made, "pgoutput"))
    assert_type(messages, list[bytes])
    capture = wf.Capture(messages, "pgoutput", threads=1)
    rows = capture.changes(kinds=["INSERT"]).read_all().num_rows
    inserts = sum(isinstance(event, wf.Insert) for event in wf.decode(messages, "pgoutput"))
    assert rows == inserts > 0
    assert len(set(names(messages))) == 2
    assert_type(wf.lsn_text(16), str)
    assert_type(wf.guess_format(messages).name, "str | None")
    print(f"wireformat {wf.__version__} on Python {sys.version.split()[0]}: {rows} rows")


if __name__ == "__main__":
    main()
