"""Where tables get another replica identity: a batch that is merged into a lake takes one for all its changes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from ..api import decode
from ..events import Relation
from ..framing.copy_data import ENVELOPE_BYTES
from .transaction_ends import FirstBytes, Piece, bytes_at, number_at

_BEGIN, _RELATION = b"BR"


class Identities:
    """Cuts a stream of pgoutput before transactions in which a table gets another replica identity.

    ends   finds the ends of transactions

    The server describes a table before its first change, and again before the next one after ALTER TABLE.
    """

    def __init__(self, ends: FirstBytes) -> None:
        self._ends = ends
        self._keys: dict[tuple[str, str], tuple[str, ...] | None] = {}

    def cut(self, piece: Piece) -> list[Piece]:
        """Returns a piece in parts: a batch ends after each of them but the last. The first may be empty."""
        bounds = [0, *self._cuts(piece.messages), len(piece.messages)]
        parts = [self._part(piece.messages[first:end]) for first, end in pairwise(bounds[:-1])]
        whole = max(piece.whole - bounds[-2], 0)
        last = piece._replace(messages=piece.messages[bounds[-2] :], whole=whole)
        if parts and not whole:  # the last transaction that has ended is in an earlier part
            last = last._replace(lsn=None, ended_us=None)
        return [*parts, last]

    def _cuts(self, messages: pa.Array) -> list[int]:
        """Returns where the transactions begin; 0 also stands for one that began in an earlier piece."""
        kinds = bytes_at(messages, ENVELOPE_BYTES)
        begins = np.flatnonzero(kinds == _BEGIN)
        found: list[int] = []
        for index in np.flatnonzero(kinds == _RELATION).tolist():
            if self._is_another(messages[index].as_py()):
                before = int(np.searchsorted(begins, index))
                found.append(int(begins[before - 1]) if before else 0)
        return sorted(set(found))

    def _is_another(self, message: bytes) -> bool:
        """Whether a table had another replica identity before. What cannot be read is judged where the batch is."""
        changed = False
        for event in decode([message], "pgoutput", mode="DROPMALFORMED", encoding_errors="replace"):
            if isinstance(event, Relation):
                table = event.table_schema, event.table_name
                is_whole = len(event.key_columns) in (0, len(event.columns))
                keys = None if is_whole else event.key_columns
                changed |= self._keys.get(table, keys) != keys
                self._keys[table] = keys
        return changed

    def _part(self, messages: pa.Array) -> Piece:
        """Returns messages of whole transactions."""
        _, _, ends = self._ends.find(messages)
        if not len(ends):
            return Piece(messages, len(messages), None, 0, False, None)
        last = int(ends[-1])
        sent = number_at(messages[last].as_py(), self._ends.time_at)
        return Piece(messages, len(messages), self._ends.lsn(messages, last), 0, False, sent)
