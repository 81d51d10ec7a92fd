"""What is known of row changes beside their values: where they were read, and their transactions, as numbers by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Array, Int
from ..jit.compiler import compiled
from ..scan.notes import MESSAGE, RECORD, ScannedRows
from ..schemas import SEQUENCE
from ..typed_tables.selections import sequence_text

FACT_NUMBERS = 7
OF_MESSAGE, OF_RECORD, OF_ORDINAL, OF_SEQUENCE, OF_XID, OF_COMMIT_TIME, GIVEN_FACTS = range(FACT_NUMBERS)
"""Facts of rows are an array int64[n, FACT_NUMBERS]: a row of it is copied at once. The last number has a bit for each
column of FACT_COLUMNS that is not null. From OF_SEQUENCE on, they are those of the transaction of a row."""

FACT_COLUMNS: Mapping[str, pa.DataType] = {
    "message": pa.int64(),
    "record": pa.int64(),
    "sequence": SEQUENCE,
    "xid": pa.int64(),
    "commit_time": pa.timestamp("us", "UTC"),
}
"""The columns that the facts of rows become."""

_NUMBERS = (OF_MESSAGE, OF_RECORD, OF_SEQUENCE, OF_XID, OF_COMMIT_TIME)
_NUMBER = dict(zip(FACT_COLUMNS, _NUMBERS, strict=True))
_BIT = {name: 1 << bit for bit, name in enumerate(FACT_COLUMNS)}
READ_FACTS = _BIT["message"] | _BIT["record"]
"""The bits of rows that a scan has noted."""

_OF_TRANSACTIONS = ("sequence", "xid", "commit_time")


def transaction_facts(facts: pa.RecordBatch) -> Array:
    """Returns the facts of transactions as those of rows, which lack what differs in the rows of a transaction.

    facts   TRANSACTION_FACTS
    """
    found = np.zeros((len(facts), FACT_NUMBERS), np.int64)
    for name in _OF_TRANSACTIONS:
        _set(found, name, facts[name], _NUMBER[name])
    return found


def facts_without_transactions(scanned: ScannedRows, rows: Array) -> Array:
    """Returns the facts of rows of the notes, without those of their transactions."""
    found = np.zeros((len(rows), FACT_NUMBERS), np.int64)
    found[:, OF_MESSAGE] = scanned.rows[MESSAGE].take(rows)
    found[:, OF_RECORD] = scanned.rows[RECORD].take(rows)
    found[:, GIVEN_FACTS] = READ_FACTS
    return found


def facts_of_columns(count: int, column: Callable[[str, pa.DataType], pa.Array]) -> Array:
    """Returns the facts of rows of a record batch.

    column   returns one of FACT_COLUMNS, which has this type
    """
    found = np.zeros((count, FACT_NUMBERS), np.int64)
    for name, type in FACT_COLUMNS.items():
        values = column(name, type)
        if name == "sequence":
            found[:, OF_ORDINAL] = values.field("ordinal").fill_null(0)
        _set(found, name, values, _NUMBER[name])
    return found


def _set(facts: Array, name: str, values: pa.Array, number: int) -> None:
    """Sets a number of all facts, and the bits that say of which rows it is given.

    values   numbers or times; for `sequence`, the number of transactions alone, or a struct with it
    """
    is_valid: Array | bool = True
    if values.null_count:
        is_valid = np.asarray(values.is_valid())
    numbers = values.field("commit_lsn") if pa.types.is_struct(values.type) else values.cast(pa.int64())
    facts[:, number] = numbers.fill_null(0)
    facts[:, GIVEN_FACTS] |= np.where(is_valid, _BIT[name], 0)


class FactColumns:
    """The facts of some rows, each number of all rows beside each other.

    facts   int64[n, FACT_NUMBERS]
    """

    def __init__(self, facts: Array) -> None:
        self._numbers = np.empty((FACT_NUMBERS, len(facts)), np.int64)
        self._given = _turn(facts, self._numbers)

    def column(self, name: str) -> pa.Array:
        """Returns one of FACT_COLUMNS."""
        mask = None if self._given & _BIT[name] else self._numbers[GIVEN_FACTS] & _BIT[name] == 0
        values = self._numbers[_NUMBER[name]]
        if name != "sequence":
            return pa.array(values, mask=mask).view(FACT_COLUMNS[name])
        children = [pa.array(values), pa.array(self._numbers[OF_ORDINAL])]
        return pa.StructArray.from_arrays(
            children, fields=list(SEQUENCE), mask=None if mask is None else pa.array(mask)
        )


@compiled
def _turn(facts: Array, numbers: Array) -> Int:
    """Fills numbers[FACT_NUMBERS, n]; returns the bits of the columns without nulls."""
    given = np.int64(-1)
    for row in range(len(facts)):
        for number in range(FACT_NUMBERS):
            numbers[number, row] = facts[row, number]
        given &= facts[row, GIVEN_FACTS]
    return given


def position_of(facts: Sequence[int]) -> dict[str, Any]:
    """Returns the position of a row, as the attributes of an error."""
    position: dict[str, Any] = {
        name: facts[_NUMBER[name]] if facts[GIVEN_FACTS] & _BIT[name] else None for name in ("message", "record")
    }
    if facts[GIVEN_FACTS] & _BIT["sequence"]:
        position["sequence"] = sequence_text({"commit_lsn": facts[OF_SEQUENCE], "ordinal": facts[OF_ORDINAL]})
    return position
