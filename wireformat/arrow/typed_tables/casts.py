"""The readers of all types; of them, those that cast a whole column, and read what the cast refuses one by one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...pgtypes import text_values
from ...pgtypes.columns import MAX_DIGITS
from ...pgtypes.text_values import DECIMAL, FLOAT, INTEGER, Misfit
from ...times import FIRST_MICROS, LAST_MICROS, MICROS_OF_DAY
from ..arrays import null_where
from ..noted_texts import NotedTexts
from ..readers.escaped_texts import read_byte_strings, split_list_texts
from ..readers.numbers import ExactFloatReader, form_of, read_numbers
from ..readers.reader import CompiledReader, Misfits, TextReader, Texts, ValueReader, are_few, as_strings

_REPEATED = 4
"""Texts that do not all fit are read once each if there are so many times as many of them as different ones."""

_FEW_VALUES = 128
"""Up to this number, values are read one by one rather than halved again."""


@dataclass(frozen=True)
class CastReader:
    """Values that Arrow casts from their texts.

    alphabet  the bytes that texts of this type consist of. A column with other bytes is checked with `pattern`
    shortest  the fewest bytes of a text: Arrow also reads shortened forms, which no server prints
    pattern   a regular expression of the texts that the cast reads correctly
    cast      casts a whole column; raises ArrowInvalid if a value does not fit
    read_one  reads one text; raises Misfit
    form      a regular expression of the texts that `read_one` may read; of others it says the same as of an empty text
    """

    type: pa.DataType
    alphabet: bytes
    shortest: int
    pattern: str
    cast: Callable[[pa.StringArray, pa.DataType], pa.Array]
    read_one: text_values.One
    form: str = ""

    def read(self, texts: Texts) -> tuple[pa.Array, Misfits]:
        """See ValueReader.read."""
        texts = as_strings(texts)
        if texts.null_count == len(texts):
            return pa.nulls(len(texts), self.type), {}
        if self._has_plain_texts(texts):
            try:
                return self.cast(texts, self.type), {}
            except pa.ArrowInvalid:
                pass
        coded = texts.dictionary_encode()
        if _REPEATED * len(coded.dictionary) <= len(texts):
            return self._read_repeated(coded)
        others = np.flatnonzero(_mask(pc.invert(pc.match_substring_regex(texts, self.pattern))))
        misfits: Misfits = {}
        if not len(others):
            return self._cast_in_halves(texts, 0, misfits), misfits
        is_other = np.zeros(len(texts), bool)
        is_other[others] = True
        column = self._cast_in_halves(null_where(is_other, texts), 0, misfits)
        if self.form:
            empty: Misfits = {}
            self._read_one_by_one(pa.array([""]), [0], empty)
            has_form = _mask(pc.match_substring_regex(texts.take(pa.array(others)), f"^(?:{self.form})$"))
            misfits |= dict.fromkeys(others[~has_form].tolist(), empty[0])
            is_other[others] = has_form
            others = others[has_form]
        values = self._read_one_by_one(texts.take(pa.array(others)), others.tolist(), misfits)
        column = pc.replace_with_mask(column, pa.array(is_other), values)
        return column, dict(sorted(misfits.items()))

    def _read_repeated(self, coded: pa.DictionaryArray) -> tuple[pa.Array, Misfits]:
        """Reads each text once: those that do not fit are often few, such as `infinity`, in many rows."""
        values, found = self.read(coded.dictionary)
        codes = np.asarray(coded.indices.fill_null(len(values))).astype(np.int64)
        is_misfit = np.zeros(len(values) + 1, bool)
        is_misfit[list(found)] = True
        rows = np.flatnonzero(is_misfit[codes])
        misfits = {row: found[code] for row, code in zip(rows.tolist(), codes[rows].tolist(), strict=True)}
        return values.take(coded.indices), misfits

    def _has_plain_texts(self, texts: pa.StringArray) -> bool:
        bounds = pc.min_max(pc.binary_length(texts)).as_py()
        return bounds["min"] >= self.shortest and not _bytes(texts).translate(None, self.alphabet)

    def _cast_in_halves(self, texts: pa.StringArray, first: int, misfits: Misfits) -> pa.Array:
        """Casts ever smaller halves, so that one value that does not fit costs little."""
        try:
            return self.cast(texts, self.type)
        except pa.ArrowInvalid:
            pass
        if len(texts) <= _FEW_VALUES:
            return self._read_one_by_one(texts, range(first, first + len(texts)), misfits)
        half = len(texts) // 2
        return pa.concat_arrays(
            [
                self._cast_in_halves(texts[:half], first, misfits),
                self._cast_in_halves(texts[half:], first + half, misfits),
            ]
        )

    def _read_one_by_one(self, texts: pa.StringArray, rows: Any, misfits: Misfits) -> pa.Array:
        values: list[object] = [None] * len(texts)
        read_one = self.read_one
        for index, (row, text) in enumerate(zip(rows, texts.to_pylist(), strict=True)):
            if text is not None:
                try:
                    values[index] = read_one(text)
                except Misfit as misfit:
                    misfits[row] = misfit.args[0]
        return pa.array(values, self.type)


@dataclass(frozen=True)
class ListReader:
    """Arrays, or vectors such as int2vector, whose elements another reader reads.

    split   splits texts into lists of the elements' texts, nested by dimension; also returns the texts that do not fit
    """

    element: ValueReader
    dimensions: int
    split: Callable[[pa.StringArray, int], tuple[pa.Array, Misfits]]

    @property
    def type(self) -> pa.DataType:
        """See ValueReader.type."""
        return list_type(self.element.type, self.dimensions)

    def read(self, texts: Texts) -> tuple[pa.Array, Misfits]:
        """See ValueReader.read."""
        texts = as_strings(texts)
        lists, misfits = self.split(texts, self.dimensions)
        column, inner = self._read_elements(lists, self.dimensions)
        misfits |= {row: f"{found}, in an element" for row, found in inner.items()}
        if not inner:
            return column, misfits
        bad = np.zeros(len(texts), bool)
        bad[list(inner)] = True
        return null_where(bad, column), dict(sorted(misfits.items()))

    def _read_elements(self, lists: pa.Array, depth: int) -> tuple[pa.Array, Misfits]:
        """Returns the lists with typed elements; misfits have the row of the outermost list."""
        if not depth:
            return self.element.read(lists)
        offsets = _offsets(lists)
        column, inner = self._read_elements(lists.values[offsets[0] : offsets[-1]], depth - 1)
        misfits: Misfits = {}
        if inner:
            owners = np.searchsorted(offsets - offsets[0], list(inner), "right") - 1
            for owner, found in zip(owners.tolist(), inner.values(), strict=True):
                misfits.setdefault(owner, found)
        column = pa.ListArray.from_arrays(
            pa.array((offsets - offsets[0]).astype(np.int32)),
            column,
            type=list_type(self.element.type, depth),
            mask=lists.is_null() if lists.null_count else None,
        )
        return column, misfits


def list_type(element: pa.DataType, dimensions: int = 1) -> pa.DataType:
    """Returns the type of nested lists, with Spark's name for the elements."""
    for _ in range(dimensions):
        element = pa.list_(pa.field("element", element))
    return element


def _offsets(lists: pa.Array) -> Any:
    return np.asarray(lists.offsets)


def _mask(flags: pa.BooleanArray) -> Any:
    """Returns bool[n]; null is false."""
    return np.asarray(pc.fill_null(flags, False))


def _bytes(texts: pa.StringArray) -> bytes:
    """Returns the text of all rows, joined."""
    _, offsets, data = texts.buffers()
    if data is None:
        return b""
    bounds = np.frombuffer(offsets, np.int32)[[texts.offset, texts.offset + len(texts)]].tolist()
    return data[bounds[0] : bounds[1]].to_pybytes()


_LISTS_OF_TEXTS = list_type(pa.string())


def _split_arrays(delimiter: str) -> Callable[[pa.StringArray, int], tuple[pa.Array, Misfits]]:
    simple = rf'^\{{[^{{}}"\\{delimiter}]+(?:{delimiter}[^{{}}"\\{delimiter}]+)*\}}$'

    def split(texts: pa.StringArray, dimensions: int) -> tuple[pa.Array, Misfits]:
        """Arrow splits arrays of one dimension without quotes, compiled code all others if they are many."""
        if dimensions > 1:
            others = np.flatnonzero(_mask(texts.is_valid()))
        else:
            others = np.flatnonzero(_mask(pc.invert(pc.match_substring_regex(texts, simple))))
        is_other = np.zeros(len(texts), bool)
        is_other[others] = True
        parsed, found = _parsed_arrays(texts.take(pa.array(others)), dimensions, delimiter)
        misfits = {int(others[row]): words for row, words in found.items()}
        if len(others) == len(texts):
            return parsed, misfits
        if dimensions > 1:
            plain = pa.nulls(len(texts), parsed.type)
        else:
            simple_texts = null_where(is_other, texts) if len(others) else texts
            plain = _split_elements(pc.utf8_trim(simple_texts, "{}"), delimiter)
        if not len(others):
            return plain, misfits
        order = np.arange(len(texts))
        order[others] = len(texts) + np.arange(len(others))
        return pa.concat_arrays([plain, parsed]).take(pa.array(order)), misfits

    return split


def _parsed_arrays(texts: pa.StringArray, dimensions: int, delimiter: str) -> tuple[pa.Array, Misfits]:
    """Parses arrays, none of which is null."""
    type = list_type(pa.string(), dimensions)
    lists, left = pa.nulls(len(texts), type), np.arange(len(texts))
    if not are_few(NotedTexts.of(texts)):
        lists, left = split_list_texts(texts, delimiter, type)
    if not len(left):
        return lists, {}
    misfits: Misfits = {}
    parsed: list[object] = []
    for row, text in zip(left.tolist(), texts.take(pa.array(left)).to_pylist(), strict=True):
        try:
            parsed.append(text_values.array(text, dimensions, delimiter))
        except Misfit as misfit:
            misfits[row] = str(misfit)
            parsed.append(None)
    order = np.arange(len(texts))
    order[left] = len(texts) + np.arange(len(left))
    return pa.concat_arrays([lists, pa.array(parsed, type)]).take(pa.array(order)), misfits


def _split_elements(texts: pa.StringArray, delimiter: str) -> pa.Array:
    """Splits texts at the delimiter; the element NULL is null."""
    lists = pc.split_pattern(texts, delimiter)
    offsets = _offsets(lists)
    values = lists.values[offsets[0] : offsets[-1]]
    values = null_where(pc.equal(values, "NULL"), values)
    return pa.ListArray.from_arrays(
        pa.array((offsets - offsets[0]).astype(np.int32)),
        values,
        type=_LISTS_OF_TEXTS,
        mask=lists.is_null() if lists.null_count else None,
    )


def _split_vectors(texts: pa.StringArray, dimensions: int) -> tuple[pa.Array, Misfits]:
    """Splits vectors, which are numbers separated by blanks, and arrays of vectors."""
    vectors, misfits = (texts, {}) if dimensions == 1 else _split_arrays(",")(texts, dimensions - 1)
    lists = pa.array(_vector_items(vectors.to_pylist()), list_type(pa.string(), dimensions))
    return lists, misfits


def _vector_items(item: Any) -> Any:
    if isinstance(item, list):
        return [_vector_items(one) for one in item]
    return item if item is None else item.split()


def _cast(texts: pa.StringArray, type: pa.DataType) -> pa.Array:
    return texts.cast(type)


def _cast_decimal(texts: pa.StringArray, type: pa.DataType) -> pa.Array:
    """Refuses numbers of more than 38 digits, or too many before the point: Arrow may cast those to other numbers."""
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest + max(type.scale, 0) > MAX_DIGITS:
        whole = type.precision - type.scale
        fits = rf"^-?0*\d{{0,{whole}}}(?:\.\d{{0,{MAX_DIGITS - whole}}})?$"
        if not pc.all(pc.match_substring_regex(texts, fits), min_count=0).as_py():
            raise pa.ArrowInvalid("too many digits")
    return texts.cast(type)


_BOOLEANS = pa.array(["t", "true", "1", "f", "false", "0"])


def _cast_boolean(texts: pa.StringArray, type: pa.DataType) -> pa.Array:
    indices = pc.index_in(texts, value_set=_BOOLEANS)
    if indices.null_count != texts.null_count:
        raise pa.ArrowInvalid("no boolean")
    return pc.less(indices, 3)


def _cast_float(texts: pa.StringArray, type: pa.DataType) -> pa.Array:
    """Refuses numbers that are too large, which Arrow casts to infinity."""
    values = texts.cast(type)
    infinite = pc.is_inf(values)
    if pc.any(infinite).as_py() and not pc.all(pc.ends_with(texts.filter(infinite), "Infinity")).as_py():
        raise pa.ArrowInvalid("too large")
    return values


def _cast_years(first: int, last: int, integers: pa.DataType) -> Callable[[pa.StringArray, pa.DataType], pa.Array]:
    """Returns a cast to dates or times that refuses values outside the years 1 to 9999, in UTC."""

    def cast(texts: pa.StringArray, type: pa.DataType) -> pa.Array:
        values = texts.cast(type)
        bounds = pc.min_max(values.cast(integers)).as_py()
        if bounds["min"] is not None and (bounds["min"] < first or bounds["max"] > last):
            raise pa.ArrowInvalid("outside of the years 1 to 9999")
        return values

    return cast


_cast_timestamp = _cast_years(FIRST_MICROS, LAST_MICROS, pa.int64())


def _cast_time(texts: pa.StringArray, type: pa.DataType) -> pa.Array:
    """Casts by way of timestamps, since Arrow does not cast texts to times of day."""
    return pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp("us")).cast(pa.int64()).cast(type)


def _cast_hex(texts: pa.StringArray, type: pa.DataType) -> pa.Array:
    r"""Casts texts that either all begin with `\x` or all do not."""
    have_prefix = pc.starts_with(texts, "\\x")
    start = 2 if pc.all(have_prefix).as_py() else 0
    try:
        return pa.array([text if text is None else bytes.fromhex(text[start:]) for text in texts.to_pylist()], type)
    except ValueError:
        raise pa.ArrowInvalid("no hex digits") from None


def _cast_bytea(texts: pa.StringArray, type: pa.DataType) -> pa.Array:
    if not pc.all(pc.starts_with(texts, "\\x")).as_py():
        raise pa.ArrowInvalid("not in hex form")
    return _cast_hex(texts, type)


_DIGITS = b"0123456789"
_HEX_DIGITS = _DIGITS + b"abcdefABCDEF"
_CLOCK = r"\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?"
_FIRST_DAY, _LAST_DAY = FIRST_MICROS // MICROS_OF_DAY, LAST_MICROS // MICROS_OF_DAY


def _integer(type: pa.DataType) -> ValueReader:
    return CastReader(type, _DIGITS + b"-", 1, r"^-?\d+$", _cast, text_values.integer(type.bit_width), INTEGER.pattern)


def _float(type: pa.DataType) -> ValueReader:
    pattern = r"^-?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|Infinity|NaN)$"
    read_one = text_values.floating(64 if type == pa.float64() else 32)
    return CastReader(type, _DIGITS + b"-+.eNaInfity", 1, pattern, _cast_float, read_one, FLOAT.pattern)


def _decimal(type: pa.DataType) -> ValueReader:
    read_one = text_values.decimal(type.precision, type.scale)
    form = rf"{DECIMAL.pattern}|NaN|-?Infinity"
    return CastReader(type, _DIGITS + b"-.", 1, r"^-?(?:\d+\.?\d*|\.\d+)$", _cast_decimal, read_one, form)


def _timestamp(type: pa.DataType) -> ValueReader:
    if type.tz is None:
        pattern = rf"^\d{{4}}-\d{{2}}-\d{{2}} {_CLOCK}$"
        return CastReader(type, _DIGITS + b"-:. ", 19, pattern, _cast_timestamp, text_values.timestamp)
    pattern = rf"^\d{{4}}-\d{{2}}-\d{{2}} {_CLOCK}[+-]\d{{2}}(?::\d{{2}})?$"
    return CastReader(type, _DIGITS + b"+-:. ", 22, pattern, _cast_timestamp, text_values.timestamp_with_zone)


def _bytes_reader(hex_only: bool) -> ValueReader:
    if hex_only:
        read_one, cast, pattern = text_values.hexadecimal, _cast_hex, r"^(?:[0-9A-Fa-f]{2})*$"
    else:
        read_one, cast, pattern = text_values.bytea, _cast_bytea, r"^\\x(?:[0-9A-Fa-f]{2})*$"
    return CastReader(pa.binary(), _HEX_DIGITS + b"\\x", 0 if hex_only else 2, pattern, cast, read_one)


_READERS: dict[int, Callable[[pa.DataType], ValueReader]] = {
    pa.bool_().id: lambda type: CastReader(
        type, b"truefals01", 1, r"^(?:t|f|true|false|1|0)$", _cast_boolean, text_values.boolean
    ),
    **{type.id: _integer for type in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{type.id: _float for type in (pa.float32(), pa.float64())},
    pa.decimal128(1).id: _decimal,
    pa.string().id: lambda type: TextReader(),
    pa.binary().id: lambda type: _bytes_reader(hex_only=False),
    pa.date32().id: lambda type: CastReader(
        type,
        _DIGITS + b"-",
        10,
        r"^\d{4}-\d{2}-\d{2}$",
        _cast_years(_FIRST_DAY, _LAST_DAY, pa.int32()),
        text_values.day,
    ),
    pa.time64("us").id: lambda type: CastReader(
        type, _DIGITS + b":.", 8, rf"^{_CLOCK}$", _cast_time, text_values.time_of_day
    ),
    pa.timestamp("us").id: _timestamp,
}
"""Arrow type id to its reader, for the types that do not depend on anything else."""

_UNITS = {pa.timestamp("us").id: "us", pa.time64("us").id: "us"}


@cache
def reader_of(type: pa.DataType, reading: str = "", delimiter: str = ",") -> ValueReader | None:
    """Returns the reader for an Arrow type; None if texts cannot be read as values of it.

    reading     `hex` for binary: hex digits without a prefix; `integer vector`: numbers separated by blanks; `integer`
                for floats: integers that they hold
    delimiter   the separator of the elements of an array
    """
    cast = cast_of(type, reading, delimiter)
    form = form_of(type)
    if cast is None:
        return None
    if type == pa.binary():
        return CompiledReader(partial(read_byte_strings, hex_only=reading == "hex"), cast)
    return cast if form is None else CompiledReader(partial(read_numbers, form=form, type=type), cast)


@cache
def cast_of(type: pa.DataType, reading: str = "", delimiter: str = ",") -> ValueReader | None:
    """Returns the reader that casts the texts of a type, which reads those that no compiled reader takes."""
    if reading == "hex" and type == pa.binary():
        return _bytes_reader(hex_only=True)
    if reading == "integer" and pa.types.is_floating(type):
        integers = reader_of(pa.int64())
        return None if integers is None else ExactFloatReader(type, integers)
    if pa.types.is_list(type):
        depth = 0
        while pa.types.is_list(type):
            type, depth = type.value_type, depth + 1
        element = reader_of(type, "integer" if reading == "integer vector" else reading)
        split = _split_vectors if reading == "integer vector" else _split_arrays(delimiter)
        return None if element is None else ListReader(element, depth, split)
    unit = _UNITS.get(type.id)
    if type.id not in _READERS or (unit is not None and type.unit != unit):
        return None
    if pa.types.is_timestamp(type) and type.tz not in (None, "UTC"):
        return None
    return _READERS[type.id](type)


_PARAMETRIC = re.compile(r"decimal128\((\d+), (\d+)\)|list<element: (.*)>")
_BY_TEXT = {
    str(type): type
    for type in (
        *(pa.bool_(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary()),
        *(pa.date32(), pa.time64("us"), pa.timestamp("us"), pa.timestamp("us", "UTC")),
    )
}


@cache
def arrow_type(text: str) -> pa.DataType:
    """Returns the Arrow type that prints as this text, out of the types in the table of column types."""
    match = _PARAMETRIC.fullmatch(text)
    if match is None:
        return _BY_TEXT[text]
    return list_type(arrow_type(match[3])) if match[3] else pa.decimal128(int(match[1]), int(match[2]))
