"""The gather: copies the texts that a scan noted into Arrow buffers, and builds the columns of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .compiled import compiled
from .scanner import Scanned
from .spans import MAPS, NAME, NEW, NUMBERS, OLD, TEXTS, TYPE, VALUE

Array = np.ndarray[Any, Any]

SHORT = 16
"""A text of up to so many bytes is copied as so many, whatever its length: no loop and no branch. Up to 2 * SHORT bytes
past a text are written, and overwritten by the next one; the last one has room for them."""


@compiled
def _measure(pairs: Any, place: int, count: int, offsets: Any) -> int:
    """Fill offsets[count + 1] from the lengths at pairs[:, place + 1]; returns how many texts are NULL."""
    total = 0
    nulls = 0
    for item in range(count):
        offsets[item] = total
        length = np.int64(pairs[item, place + 1])
        if length < 0:
            nulls += 1
        else:
            total += length
    offsets[count] = total
    return nulls


@compiled
def _copy(pairs: Any, place: int, count: int, offsets: Any, source: Any, text: Any, target: Any) -> None:
    """Copy every text to target[offsets[i]:offsets[i + 1]]; the one rule for where a text lies."""
    source_limit = np.int64(len(source)) - SHORT
    text_limit = np.int64(len(text)) - SHORT
    for item in range(count):
        start = np.int64(pairs[item, place])
        length = np.int64(pairs[item, place + 1])
        to = np.int64(offsets[item])
        if length <= 0:
            continue
        if start >= 0:
            if length <= SHORT and start <= source_limit:
                for step in range(SHORT):
                    target[to + step] = source[start + step]
            else:
                target[to : to + length] = source[start : start + length]
        else:
            start = -1 - start
            if start <= text_limit and length <= 2 * SHORT and start + 2 * SHORT <= len(text):
                for step in range(2 * SHORT):
                    target[to + step] = text[start + step]
            else:
                target[to : to + length] = text[start : start + length]


@compiled
def _choose_types(spans: Any, rows: int, ends: Any, given: Any, pairs: Any) -> int:
    """The types of every row: those of new, or of old where there is no new; returns how many."""
    count = 0
    for row in range(rows):
        place = NEW if spans.given[NEW, row] else OLD
        cells = spans.new if place == NEW else spans.old
        begin = spans.ends[place, row - 1] if row > 0 else 0
        for cell in range(begin, spans.ends[place, row]):
            pairs[count, 0] = cells[cell, TYPE]
            pairs[count, 1] = cells[cell, TYPE + 1]
            count += 1
        ends[row] = count
        given[row] = spans.given[place, row]
    return count


def record_batch(scanned: Scanned, schema: pa.Schema) -> pa.RecordBatch:
    """The rows that were noted as columns."""
    return pa.RecordBatch.from_arrays([_column(field, scanned) for field in schema], schema=schema)


def _column(field: pa.Field, scanned: Scanned) -> pa.Array:
    name, kind, rows, spans = field.name, field.type, scanned.rows, scanned.spans
    if name in NUMBERS:
        number = NUMBERS.index(name)
        return _numbers(spans.numbers[number, :rows], spans.present[number, :rows], kind)
    if name in TEXTS:
        return _strings(spans.texts[TEXTS.index(name)], 0, rows, scanned, kind)
    if name in MAPS:
        return _map(MAPS.index(name), kind, scanned)
    if name == "types":
        return _types(kind, scanned)
    return pa.nulls(rows, kind)  # unchanged and error: a scan never fills them


def _numbers(values: Array, present: Array, kind: pa.DataType) -> pa.Array:
    data = pa.py_buffer(values.astype(np.int32 if kind == pa.int32() else np.int64))
    return pa.Array.from_buffers(kind, len(values), [_validity(present), data])


def _map(place: int, kind: pa.DataType, scanned: Scanned) -> pa.Array:
    spans, rows = scanned.spans, scanned.rows
    cells = (spans.new, spans.old, spans.detail)[place]
    count = int(spans.ends[place, rows - 1]) if rows else 0
    keys = _strings(cells, NAME, count, scanned, pa.string())
    values = _strings(cells, VALUE, count, scanned, pa.string())
    entries = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
    return _nested(kind, spans.ends[place, :rows], spans.given[place, :rows], entries)


def _types(kind: pa.DataType, scanned: Scanned) -> pa.Array:
    spans, rows = scanned.spans, scanned.rows
    most = int(spans.ends[NEW, rows - 1]) + int(spans.ends[OLD, rows - 1]) if rows else 0
    ends, given = np.empty(rows, np.int32), np.empty(rows, np.uint8)
    pairs = np.empty((most, 2), np.int32)
    count = _choose_types(spans, rows, ends, given, pairs)
    return _nested(kind, ends, given, _strings(pairs, 0, count, scanned, pa.string()))


def _nested(kind: pa.DataType, ends: Array, given: Array, children: pa.Array) -> pa.Array:
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    buffers = [_validity(given), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, len(ends), buffers, children=[children])


def _strings(pairs: Array, place: int, count: int, scanned: Scanned, kind: pa.DataType) -> pa.Array:
    offset_buffer = pa.allocate_buffer(4 * (count + 1))
    offsets = np.frombuffer(offset_buffer, np.int32)
    nulls = _measure(pairs, place, count, offsets)
    size = int(offsets[count])
    data = pa.allocate_buffer(size + 2 * SHORT, resizable=True)
    _copy(pairs, place, count, offsets, scanned.source, scanned.spans.text, np.frombuffer(data, np.uint8))
    data.resize(size, shrink_to_fit=False)
    validity = _validity(pairs[:count, place + 1] >= 0) if nulls else None
    return pa.Array.from_buffers(kind, count, [validity, offset_buffer, data], nulls)


def _validity(present: Array) -> pa.Buffer | None:
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
