"""The order of sources: that of the positions in their messages."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import OrderError
from ..lsn import lsn_text, unsigned


class SourceOrder:
    """Checks that sources come in the order of their positions: each begins at or after the beginning of the last one.

    Raises OrderError, which names both.
    """

    COLUMNS = ("kind", "message", "csn", "commit_lsn")

    def __init__(self, format: str) -> None:
        self._format = format
        self._begin: tuple[str, str, int] | None = None
        self._source: str | None = None

    def take(self, batch: pa.RecordBatch, source: str) -> None:
        """Looks at the next rows."""
        if source == self._source:
            return
        begins = batch.filter(pc.equal(batch["kind"], "BEGIN"))
        for name in ("csn", "commit_lsn"):
            values = begins[name].drop_null()
            if len(values):
                self._next(source, name, unsigned(values[0].as_py()), begins)
                return

    def _next(self, source: str, name: str, value: int, begins: pa.RecordBatch) -> None:
        earlier, self._source, self._begin = self._begin, source, (source, name, value)
        if earlier is None or earlier[1] != name or earlier[2] <= value:
            return
        text = str if name == "csn" else lsn_text
        raise OrderError(
            f"a source that begins at or after {earlier[0]}, at {name} {text(earlier[2])}",
            f"{source}, which begins at {text(value)}",
            format=self._format,
            message=begins["message"][0].as_py(),
            state="between sources",
            open="",
            hint="give the files in the order of the stream, or name the columns that order the messages with order_by",
        )
