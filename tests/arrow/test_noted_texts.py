"""Texts where they were noted: those of a string column, some of its rows, and the copy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat import errors
from wireformat.arrow import noted_texts
from wireformat.arrow.noted_texts import NotedTexts

TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=20)


@given(TEXTS, st.data())
def test_texts_of_a_column_and_of_some_rows(texts: list[str | None], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(texts)))
    column = pa.array(texts, pa.string())[first:]
    noted = NotedTexts.of(column)
    assert noted.strings().equals(column)
    data_buffer = column.buffers()[2]
    assert not data_buffer or noted.source.ctypes.data == data_buffer.address, "the bytes are not copied"
    rows = data.draw(st.lists(st.integers(-1, len(column) - 1), max_size=9))
    of_rows = NotedTexts.of_rows(column, np.array(rows, np.int64))
    assert of_rows.strings().to_pylist() == [None if row < 0 else column[row].as_py() for row in rows]
    chosen = np.array([row for row in rows if row >= 0], np.int64)
    assert noted.chosen(chosen).strings().equals(column.take(pa.array(chosen)))


def test_texts_that_do_not_fit_in_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noted_texts, "COLUMN_BYTES", 3)
    assert NotedTexts.of(pa.array(["a", None, "bc"])).strings().to_pylist() == ["a", None, "bc"]
    with pytest.raises(errors.LimitExceeded, match="a column of texts has 4 bytes"):
        NotedTexts.of(pa.array(["ab", "cd"])).strings()
