"""Writes and reads a position, for a saved state and for the metadata of a table of open rows."""

from __future__ import annotations

from typing import Any

from .positions import Position
from .saved import COUNT, TEXT, UNSIGNED, SavedTable, Shape, dump, load, maybe, seal, unseal

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
