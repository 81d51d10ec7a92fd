"""A slot that is read by SQL functions, where START_REPLICATION cannot be had: peeked at, and advanced afterwards."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping

from ..lsn import lsn_text, lsn_value
from .connection import EPOCH_SECONDS, Connection
from .messages import Gathered
from .slots import find_system
from .transaction_ends import Cutter, Piece

MOST_CHANGES = 20_000
"""Changes of one look. The server ends it at the end of the transaction that reaches so many."""

POLL_SECONDS = 0.5
"""How often an idle slot is looked at."""

BINARY_FORMATS = ("pgoutput", "gaussdb-binary")

_ENVELOPE = struct.Struct(">cQQq")


class SqlIntake:
    """Peeks at a slot, and advances it when the changes are safe. It has the methods of `Intake`.

    connection   without replication
    options      of the plugin
    safe         up to where everything is safe
    """

    def __init__(
        self, connection: Connection, cutter: Cutter, slot: str, format: str, options: Mapping[str, str], safe: int
    ) -> None:
        self._connection = connection
        self._cutter = cutter
        self._slot = connection.literal(slot)
        self._safe = 0
        self._is_waiting = False
        self._is_binary = format in BINARY_FORMATS
        self.received = 0
        function = "pg_logical_slot_peek_binary_changes" if self._is_binary else "pg_logical_slot_peek_changes"
        listed = "".join(f", {connection.literal(text)}" for pair in options.items() for text in pair)
        self._sql = f"select * from pg_catalog.{function}({self._slot}, null, {MOST_CHANGES}{listed})"
        self.confirm(safe)  # the lake may have more than the server has heard: it would come again

    def take(self, seconds: float) -> Piece | None:
        """See Intake.take. Between a piece and its confirmation there is no other: it would be the same."""
        if self._is_waiting:
            return None
        end = find_system(self._connection).flushed
        gathered = Gathered()
        for row in self._connection.query(self._sql):
            lsn, data = lsn_value(row.get("lsn") or row.get("location") or ""), row["data"] or ""
            payload = bytes.fromhex(data[2:]) if self._is_binary else data.encode()
            gathered.add(_ENVELOPE.pack(b"w", lsn, lsn, _now_us()) + payload)
        piece = self._cutter.piece(gathered.array())
        self._is_waiting = bool(gathered.sizes)
        if not gathered.sizes:
            piece = piece._replace(lsn=end, received=end)
            time.sleep(min(max(seconds, 0), POLL_SECONDS))
        self.received = piece.received
        return piece

    def confirm(self, lsn: int) -> None:
        """Everything before this LSN is safe: the server may forget it."""
        if lsn > self._safe:
            position = self._connection.literal(lsn_text(lsn))
            self._connection.query(f"select pg_catalog.pg_replication_slot_advance({self._slot}, {position})")
            self._safe = lsn
        self._is_waiting = False

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def _now_us() -> int:
    return int((time.time() - EPOCH_SECONDS) * 1e6)
