"""Cells of pgoutput that are read without construct: values and errors are those of the declaration."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.declare import Counted, Int16ub, Struct, parse
from wireformat.formats.pgoutput.messages import CELL, TUPLE

DECLARED = Struct("cells" / Counted(Int16ub, CELL))
"""TUPLE, without a reader of good cells."""

VALUES = st.sampled_from([b"", b"12", "é".encode(), b"\xff", bytes(300)])
CELLS = st.sampled_from([b"n", b"u", b"x"]) | st.builds(
    lambda tag, value: tag + len(value).to_bytes(4, "big") + value, st.sampled_from([b"t", b"b"]), VALUES
)
ENCODINGS = st.sampled_from([("utf-8", "strict"), ("utf-8", "replace"), ("gbk", "strict")])


def _read(declaration: Struct, record: bytes, stop: int, encoding: str, errors: str) -> Any:
    """The cells, or the error's text."""
    try:
        found = parse(declaration, record, 3, stop, encoding=encoding, errors=errors)
    except wf.DecodeError as error:
        return str(error)
    return [(cell.at, cell.cell) for cell in found.cells]


@given(st.lists(CELLS, max_size=5), st.integers(0, 6), ENCODINGS, st.data())
def test_as_the_declaration_reads_them(
    cells: list[bytes], count: int, encoding: tuple[str, str], data: st.DataObject
) -> None:
    record = b"abc" + count.to_bytes(2, "big") + b"".join(cells)
    if len(record) > 5 and data.draw(st.booleans()):
        at = data.draw(st.integers(5, len(record) - 1))
        record = record[:at] + bytes([data.draw(st.integers(0, 255))]) + record[at + 1 :]
    stop = data.draw(st.integers(3, len(record)) | st.just(len(record)))
    assert _read(TUPLE, record, stop, *encoding) == _read(DECLARED, record, stop, *encoding)


def test_good_cells_are_read_without_construct() -> None:
    record = b"\0\3n" + b"t\0\0\0\1a" + b"t\0\0\0\1\xff"
    found = []

    class Remembered(type(CELL)):  # type: ignore[misc]
        def _parse(self, stream: Any, context: Any, path: str) -> Any:
            found.append(path)
            return super()._parse(stream, context, path)

    cells = type(TUPLE.cells.subcon)(Int16ub, Remembered(*CELL.subcons))
    text = _read(Struct("cells" / cells), b"abc" + record, 3 + len(record), "utf-8", "strict")
    assert "cells[2]" in text
    assert found == ["(parsing) -> cells[2]"]
