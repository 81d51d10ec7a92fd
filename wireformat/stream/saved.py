"""Saved states: a header line of JSON with the kind of state, its version and a checksum, followed by the state.

A state outlives the process and the release that wrote it. So it is plain data with named fields, its shape is a table
that names no class, and reading it runs no code of the state.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from ..errors import StateError

HEADER_BYTES = 128
"""The length of the header line, padded with blanks, so that Arrow's buffers after it are aligned."""

START_OVER = "or start over without a state (on Spark: with a new checkpoint folder)"


def seal(kind: str, version: int, payload: bytes) -> bytes:
    """Returns the payload with a header before it."""
    header = json.dumps({"state": kind, "version": version, "crc32": crc32(payload)}).encode()
    return header.ljust(HEADER_BYTES - 1) + b"\n" + payload


def unseal(kind: str, versions: Collection[int], data: Any) -> tuple[int, memoryview]:
    """Returns the version and the payload of a state of this kind.

    versions   the versions that the caller can read
    data       an object with a buffer, which is not copied

    Raises StateError for another kind or version, and if a byte was changed or lost.
    """
    view = memoryview(data)
    try:
        header = json.loads(bytes(view[:HEADER_BYTES]))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("state") != kind or type(header.get("version")) is not int:
        got = "a pickle, which is never loaded" if bytes(view[:1]) == b"\x80" else "other bytes"
        raise StateError(f"saved state: expected one of {kind}, got {got}: pass the state that was saved, {START_OVER}")
    version = header["version"]
    if version not in versions:
        readable = " or ".join(map(str, sorted(versions)))
        raise StateError(
            f"saved state: expected version {readable} of {kind}, which this release reads, got version {version}: "
            f"continue with a release that reads it, {START_OVER}"
        )
    payload = view[HEADER_BYTES:]
    if crc32(payload) != header.get("crc32"):
        raise damaged(kind, "the bytes that were saved", "others: the checksum differs")
    return version, payload


def damaged(kind: str, expected: str, got: str) -> StateError:
    """Returns the error for a state that was changed after it was written."""
    return StateError(f"saved state: {kind}: expected {expected}, got {got}: restore it from a copy, {START_OVER}")


def dump(fields: Mapping[str, Any]) -> bytes:
    """Returns the fields as one line of JSON."""
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def load(kind: str, text: Any, shape: Shape) -> dict[str, Any]:
    """Returns the fields of a line of JSON; raises StateError if they do not have this shape."""
    try:
        fields: dict[str, Any] = json.loads(bytes(text))
    except (ValueError, RecursionError):
        raise damaged(kind, "JSON", "other text") from None
    check(fields, shape, kind)
    return fields


@dataclass(frozen=True)
class Scalar:
    """The allowed values of a scalar.

    description  of the value, for errors
    low, high    the lowest and the highest number
    choices      all allowed values, if they are few
    """

    description: str
    types: frozenset[type]
    low: int | None = None
    high: int | None = None
    choices: frozenset[Any] | None = None

    def misfit(self, values: list[Any]) -> str | None:
        """Returns a description of a value that is not allowed; None if all values are."""
        found = {*map(type, values)}
        if not found <= self.types:
            return _type_name((found - self.types).pop())
        if type(None) in found:
            values = [value for value in values if value is not None]
        if self.choices is not None and not self.choices.issuperset(values):
            return "another text"
        if int in found and self.low is not None and self.high is not None:
            numbers = values if str not in found else [value for value in values if type(value) is int]
            if not self.low <= min(numbers) <= max(numbers) <= self.high:
                return "a number out of range"
        if str in found and not _is_unicode(values if int not in found else filter(_is_text, values)):
            return "half of a surrogate pair"
        return None


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_unicode(texts: Iterable[str]) -> bool:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


_TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number with a fraction",
    bool: "true or false",
    type(None): "null",
}


def _type_name(found: type) -> str:
    return _TYPE_NAMES.get(found, found.__name__)


def maybe(scalar: Scalar) -> Scalar:
    """Returns a scalar that may also be null."""
    return replace(scalar, description=f"{scalar.description} or null", types=scalar.types | {type(None)})


def one_of(*choices: str) -> Scalar:
    """Returns a scalar that is one of these texts."""
    return Scalar(f"one of {', '.join(choices)}", frozenset({str}), choices=frozenset(choices))


FLAG = Scalar("true or false", frozenset({bool}))
TEXT = Scalar("a text", frozenset({str}))
NAME = Scalar("a text or a whole number of 64 bits", frozenset({str, int}), -(1 << 63), (1 << 64) - 1)
UNSIGNED = Scalar("an unsigned number of 64 bits", frozenset({int}), 0, (1 << 64) - 1)
SIGNED = Scalar("a signed number of 64 bits", frozenset({int}), -(1 << 63), (1 << 63) - 1)
COUNT = Scalar("a count", frozenset({int}), 0, 1 << 60)


@dataclass(frozen=True)
class SavedTable:
    """An object of columns, which are lists of equal length."""

    columns: Mapping[str, Scalar]


Shape = Mapping[str, "Scalar | list[Scalar] | SavedTable | Shape"]
"""An object with exactly these fields. A list of one scalar stands for a list of any number of its values."""


def check(found: Any, shape: Shape, kind: str, path: str = "") -> None:
    """Raises StateError unless there are exactly the fields of this shape, with allowed values."""
    _check_names(found, shape, kind, path)
    for name, wanted in shape.items():
        value, here = found[name], f"{path}{name}"
        if isinstance(wanted, Scalar):
            _check_values([value], wanted, kind, here)
        elif isinstance(wanted, list):
            _check_list(value, wanted[0], kind, here)
        elif isinstance(wanted, SavedTable):
            _check_names(value, wanted.columns, kind, f"{here}.")
            for column, scalar in wanted.columns.items():
                _check_list(value[column], scalar, kind, f"{here}.{column}")
            if len({len(value[column]) for column in wanted.columns}) > 1:
                raise damaged(kind, f"columns of equal length in {here}", "shorter and longer ones")
        else:
            check(value, wanted, kind, f"{here}.")


def _check_names(found: Any, names: Collection[str], kind: str, path: str) -> None:
    where = f"in {path.rstrip('.')}" if path else "at the top"
    if not isinstance(found, dict):
        raise damaged(kind, f"an object {where}", _type_name(type(found)))
    missing, unknown = sorted(names - found.keys()), len(found.keys() - set(names))
    if missing or unknown:
        got = f"none named {', '.join(missing)}" if missing else f"{unknown} unknown"
        raise damaged(kind, f"the fields {', '.join(names)} {where}", got)


def _check_list(values: Any, wanted: Scalar, kind: str, path: str) -> None:
    if not isinstance(values, list):
        raise damaged(kind, f"a list in {path}", _type_name(type(values)))
    _check_values(values, wanted, kind, path)


def _check_values(values: list[Any], wanted: Scalar, kind: str, path: str) -> None:
    misfit = wanted.misfit(values)
    if misfit is not None:
        raise damaged(kind, f"{wanted.description} in {path}", misfit)
