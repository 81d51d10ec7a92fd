"""Positions: how far a stream has been delivered, and so which transactions are sent again; and their saved form."""

from __future__ import annotations

from typing import Any, NamedTuple

from .saved import COUNT, TEXT, UNSIGNED, SavedTable, Shape, dump, load, maybe, seal, unseal


class Position(NamedTuple):
    """How far a stream has been delivered.

    transactions    the number of committed transactions, including those that were sent again
    lsn, csn        the highest commit_lsn and csn of the transactions, unsigned
    prepared        gid and LSN of the transactions that have been delivered at their PREPARE and have not ended yet
    """

    transactions: int = 0
    lsn: int | None = None
    csn: int | None = None
    prepared: tuple[tuple[str, int | None], ...] = ()

    def covers(self, lsn: int | None, csn: int | None) -> bool:
        """Whether a transaction with this commit_lsn and csn has been read already, and is sent again.

        Neither number may be above the position, since in CSN order the LSNs are not always ascending. A transaction
        without an LSN is never covered.
        """
        if lsn is None or self.lsn is None or lsn > self.lsn:
            return False
        return csn is None or (self.csn is not None and csn <= self.csn)

    def is_ahead(self, other: Position | None) -> bool:
        """Whether this is further than another position of the stream; None is its beginning."""
        if other is None:
            return True
        if self.lsn is None and self.csn is None:
            return self.transactions > other.transactions
        return _is_more(self.lsn, other.lsn) or _is_more(self.csn, other.csn)

    def advanced(self, lsn: int | None, csn: int | None, transactions: int = 1) -> Position:
        """Returns the position after more transactions, whose highest commit_lsn and csn are given."""
        return Position(
            self.transactions + transactions, _highest(self.lsn, lsn), _highest(self.csn, csn), self.prepared
        )


def _highest(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else max(left, right)


def _is_more(number: int | None, other: int | None) -> bool:
    return number is not None and (other is None or number > other)


SHAPE: Shape = {
    "transactions": COUNT,
    "lsn": maybe(UNSIGNED),
    "csn": maybe(UNSIGNED),
    "prepared": SavedTable({"gid": TEXT, "lsn": maybe(UNSIGNED)}),
}
"""The fields, in version 1 of a position and of the state that contains one. A version is never changed."""

_KIND = "wireformat.position"


def fields_of(position: Position) -> dict[str, Any]:
    """Returns the fields of a position."""
    return {
        "transactions": position.transactions,
        "lsn": position.lsn,
        "csn": position.csn,
        "prepared": {"gid": [gid for gid, _ in position.prepared], "lsn": [lsn for _, lsn in position.prepared]},
    }


def position_of(fields: dict[str, Any]) -> Position:
    """Returns the position with these fields, which were checked."""
    prepared = fields["prepared"]
    return Position(
        fields["transactions"], fields["lsn"], fields["csn"], tuple(zip(prepared["gid"], prepared["lsn"], strict=True))
    )


def write_position(position: Position) -> bytes:
    """Returns a position as bytes."""
    return seal(_KIND, 1, dump(fields_of(position)))


def read_position(data: bytes) -> Position:
    """Returns the position that was written; raises StateError."""
    version, payload = unseal(_KIND, _READERS, data)
    return _READERS[version](payload)


def _read_1(payload: memoryview) -> Position:
    return position_of(load(_KIND, payload, SHAPE))


_READERS = {1: _read_1}
