"""Writes BEGIN and COMMIT rows by their declarations, a column at a time.

Rows that hold anything unusual are left to Python, which writes them or says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from struct import calcsize
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...declare import Coded, Number, Text, Time
from ...errors import OptionError
from ...events import Begin, Commit, Event
from ...formats.direct.records import RecordForm
from ...limits import RECORD_BYTES
from ...lsn import lsn_value, signed
from ...times import MICROS_OF_2000
from ..arrays import Array
from ..commit_times import parse_times
from ..schemas import NUMBER_COLUMNS

KINDS = (Begin, Commit)

_LSNS, _TEXTS = ("first_lsn", "end_lsn"), ("commit_time", "username")
"""Fields of events that `detail` has as a text."""

FEW_ROWS = 1 << 6
"""Fewer rows of a kind are left to Python, which is faster."""

_NONE = pa.scalar(None, pa.binary())


def control_records(
    batch: pa.RecordBatch, rows: Array, form_of: Callable[[type[Event]], RecordForm | None], *, framed: bool
) -> Iterator[tuple[Array, pa.Array]]:
    """Yields those of the rows that are plain BEGIN or COMMIT rows, int64[m], with their records, m binary values.

    form_of   how the format writes events of a type now
    framed    whether a record has its length and its LSN before it
    """
    kinds = batch.column("kind").take(pa.array(rows))
    batch = batch.select([*NUMBER_COLUMNS, "commit_time", "detail"])
    for kind in KINDS:
        chosen = rows[np.asarray(pc.equal(kinds, kind.kind))]
        form = form_of(kind) if len(chosen) >= FEW_ROWS else None
        if form is None or any(type(field.declaration) not in _WRITERS for field in form.fields):
            continue
        columns = batch.take(pa.array(chosen))
        records = _records(columns, kind, form)
        if framed:
            length = pc.add(pc.binary_length(records).cast(pa.int64()), 8)
            records = _joined(_big_endian(length, ">I"), _big_endian(columns.column("lsn"), ">Q"), records)
        yield chosen[np.asarray(records.is_valid())], records.drop_null()


def _records(rows: pa.RecordBatch, kind: type[Event], form: RecordForm) -> pa.Array:
    """The kind byte and the fields of each row; null where Python must write it."""
    detail = _Detail(rows.column("detail"), [name for name in (*_LSNS, *_TEXTS) if name in form.said])
    columns: dict[str, pa.Array] = {name: rows.column(name) for name in NUMBER_COLUMNS}
    columns |= {name: detail.texts(name) for name in detail.keys}
    columns |= {name: _lsns(columns[name]) for name in _LSNS if name in columns}
    is_plain = detail.are_plain()
    for name in NUMBER_COLUMNS:
        if name != "lsn" and name in {field.name for field in fields(kind)} - form.said:
            is_plain = pc.and_(is_plain, columns[name].is_null())
    is_time_said = columns["commit_time"].is_valid() if "commit_time" in columns else False
    is_plain = pc.and_(is_plain, pc.or_(rows.column("commit_time").is_null(), is_time_said))
    parts = [pa.scalar(form.kind)]
    for name, declaration, tag in form.fields:
        values = columns.get(name, pa.nulls(len(rows), pa.int64()))
        written = _WRITERS[type(declaration)](declaration, values)
        parts.append(written if tag is None else pc.if_else(values.is_null(), b"", _joined(pa.scalar(tag), written)))
    records = _joined(*parts)
    is_plain = pc.and_(is_plain, pc.less_equal(pc.binary_length(records), RECORD_BYTES - 8))
    return pc.if_else(is_plain, records, _NONE)


class _Detail:
    """The texts of `detail` by some of its keys."""

    def __init__(self, detail: pa.MapArray, keys: list[str]) -> None:
        self.keys = keys
        offsets = detail.offsets.to_numpy()
        self._count = len(detail)
        self._rows = np.repeat(np.arange(self._count), np.diff(offsets))
        names, self._items = (values.slice(int(offsets[0]), len(self._rows)) for values in (detail.keys, detail.items))
        self._numbers = pc.index_in(names, pa.array(keys, pa.string())).fill_null(-1).to_numpy()

    def texts(self, key: str) -> pa.Array:
        """The text of a key in each row; null where there is none."""
        found = np.full(self._count, -1)
        at = np.flatnonzero(self._numbers == self.keys.index(key))
        found[self._rows[at]] = at
        return self._items.take(pa.array(found, mask=found < 0))

    def are_plain(self) -> pa.Array:
        """Whether a row has no other keys, each at most once and with a text."""
        is_good = (self._numbers >= 0) & np.asarray(self._items.is_valid())
        times = np.bincount(
            (self._rows * len(self.keys) + self._numbers)[is_good], minlength=self._count * len(self.keys)
        )
        is_plain = np.bincount(self._rows[~is_good], minlength=self._count) == 0
        return pa.array(is_plain & (times.reshape(self._count, len(self.keys)) <= 1).all(axis=1))


def _lsns(texts: pa.Array) -> pa.Array:
    """Their numbers; null where a text is none."""

    def number(text: str | None) -> int | None:
        try:
            return None if text is None else signed(lsn_value(text))
        except OptionError:
            return None

    return pa.array([number(text) for text in texts.to_pylist()], pa.int64())


def _joined(*parts: pa.Array) -> pa.Array:
    """The parts of each row as one; null where a part is."""
    return pc.binary_join_element_wise(*parts, pa.scalar(b""))


def _big_endian(numbers: pa.Array, format: str) -> pa.Array:
    """int64 as the bytes of struct's format; null where a number is, or does not fit. Numbers of 64 bits always do."""
    size = calcsize(format)
    is_good = numbers.is_valid()
    if size < 8:
        least = -1 << 8 * size - 1 if format[1].islower() else 0
        fits = pc.and_(pc.greater_equal(numbers, least), pc.less(numbers, least + (1 << 8 * size)))
        is_good = pc.and_(is_good, fits.fill_null(False))
    data = numbers.fill_null(0).to_numpy().astype(f">i{size}")
    offsets = np.arange(0, size * (len(numbers) + 1), size, dtype=np.int32)
    found = pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pc.if_else(is_good, found, _NONE)


def _number(field: Any, numbers: pa.Array) -> pa.Array:
    return _big_endian(numbers, field.fmtstr)


def _text(field: Any, texts: pa.Array) -> pa.Array:
    length = pc.binary_length(texts).cast(pa.int64())
    return _joined(_big_endian(length, field.subcon.fmtstr), texts.cast(pa.binary()))


def _time(field: Any, texts: pa.Array) -> pa.Array:
    micros, are_times = parse_times(texts.fill_null(""))
    return _big_endian(pa.array(micros - MICROS_OF_2000, mask=~are_times), field.subcon.fmtstr)


def _coded(field: Any, numbers: pa.Array) -> pa.Array:
    """What has one value only, which is no field of the event."""
    return _big_endian(pa.repeat(field.numbers[None], len(numbers)).cast(pa.int64()), field.subcon.fmtstr)


_WRITERS: dict[type[Any], Callable[[Any, pa.Array], pa.Array]] = {
    Number: _number,
    Text: _text,
    Time: _time,
    Coded: _coded,
}
"""How a column of each kind of field is written."""
