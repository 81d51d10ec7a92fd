"""A row of the table of options, for all modes and for one mode, and the kinds of their values.

Each kind reads a value, and describes the allowed values for errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from ..errors import OptionError
from ..identifiers import split_pattern

Value = bool | int | str | tuple[str, ...]

_MB = {"MB": 1, "GB": 1024}
_WORDS = {"on": True, "true": True, "off": False, "false": False, "0": False, "1": True}


class Kind(Protocol):
    """A kind of value."""

    @property
    def allowed(self) -> tuple[str | int, ...]:
        """Returns the allowed values, or a description, for errors and the printed table."""

    def read(self, value: Any) -> Value:
        """Returns the value as it is kept; raises ValueError for one that is not allowed."""


@dataclass(frozen=True)
class Switch:
    """on or off, or a bool; true, false, 0 and 1 mean the same."""

    allowed: tuple[str, ...] = ("on", "off")

    def read(self, value: Any) -> bool:
        """See Kind.read."""
        known = _WORDS.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(known, int) or known not in (0, 1) or ("off", "on")[known] not in self.allowed:
            raise ValueError
        return bool(known)


@dataclass(frozen=True)
class ZeroOrOne:
    """0 or 1, also in the words of a switch."""

    allowed: ClassVar[tuple[int, ...]] = (0, 1)

    def read(self, value: Any) -> int:
        """See Kind.read."""
        return int(Switch().read(value))


@dataclass(frozen=True)
class OneOf:
    """One of some words."""

    allowed: tuple[str, ...]

    def read(self, value: Any) -> str:
        """See Kind.read."""
        if not isinstance(value, str) or value not in self.allowed:
            raise ValueError
        return value


@dataclass(frozen=True)
class Integer:
    """A whole number of a range, or its digits."""

    least: int
    most: int
    unit: str = ""
    is_power_of_two: bool = False

    @property
    def allowed(self) -> tuple[str, ...]:
        """See Kind.allowed."""
        power = ", a power of two" if self.is_power_of_two else ""
        return (f"{self.least}..{self.most} {self.unit}".rstrip() + power,)

    def read(self, value: Any) -> int:
        """See Kind.read."""
        number = _whole(value)
        if not self.least <= number <= self.most or (self.is_power_of_two and number & (number - 1)):
            raise ValueError
        return number


@dataclass(frozen=True)
class Share:
    """A number of MB or GB that is at most a share of the server's max_process_memory, which may not be known."""

    percent: int
    unit: str

    @property
    def allowed(self) -> tuple[str, ...]:
        """See Kind.allowed."""
        return (f"0..{self.percent} % of max_process_memory, in {self.unit}",)

    def read(self, value: Any) -> int:
        """See Kind.read."""
        return Integer(0, (1 << 31) - 1).read(value)

    def of(self, memory_mb: int) -> Integer:
        """Returns the range on a server with this max_process_memory."""
        return Integer(0, memory_mb * self.percent // (100 * _MB[self.unit]), self.unit)


@dataclass(frozen=True)
class Items:
    """Texts separated by commas, or a list of them; kept as a tuple."""

    words: str
    check: Callable[[str], object]
    """Raises ValueError for a text that is not allowed."""

    @property
    def allowed(self) -> tuple[str, ...]:
        """See Kind.allowed."""
        return (self.words,)

    def read(self, value: Any) -> tuple[str, ...]:
        """See Kind.read."""
        items = value.split(",") if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)) or not items:
            raise ValueError
        for item in items:
            if not isinstance(item, str) or not item or item != item.strip() or "," in item:
                raise ValueError
            self.check(item)
        return tuple(items)


@dataclass(frozen=True)
class LsnText:
    """Two numbers of 64 bits with a slash between them."""

    allowed: ClassVar[tuple[str, ...]] = ("csn/lsn, two decimal numbers of 64 bits",)

    def read(self, value: Any) -> str:
        """See Kind.read."""
        if not isinstance(value, str) or value.count("/") != 1:
            raise ValueError
        for number in value.split("/"):
            Integer(0, (1 << 64) - 1).read(number)
        return value


def check_pattern(text: str) -> None:
    """A pattern of tables, without blanks anywhere."""
    if re.search(r"\s", text):
        raise ValueError
    split_pattern(text)


def check_oid(text: str) -> None:
    """A number of 32 bits."""
    Integer(0, 0xFFFFFFFF).read(text)


def check_name(text: str) -> None:
    """Allows any text as a name."""


def _whole(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return value


DECODING_MODES = ("serial", "parallel", "sql")
"""How a stream is decoded: by one process, by several, or in an SQL function."""

PRODUCTS = ("GaussDB", "openGauss")

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class ByMode(Generic[Thing]):
    """A value that depends on the mode."""

    serial: Thing
    parallel: Thing
    sql: Thing


class Option(NamedTuple):
    """An option in one mode; default None: it is not set."""

    name: str
    default: Any
    kind: Kind
    sentence: str

    @property
    def allowed(self) -> tuple[str | int, ...]:
        """The allowed values, or a description."""
        return self.kind.allowed

    def read(self, value: Any) -> Value:
        """Returns the value as it is kept; raises OptionError with the name, the value and what is allowed."""
        try:
            return self.kind.read(value)
        except ValueError:
            words = " or ".join(map(str, self.allowed))
            raise OptionError(f"option {self.name}: expected {words}, got {value!r}") from None


@dataclass(frozen=True)
class Spec:
    """An option.

    sentence    what it does
    needs       names in REQUIREMENTS of gaussdb.py: what must hold for it to be given
    products    the servers that have it
    is_written  it shapes what a writer of this package writes
    """

    name: str
    kind: Kind | ByMode[Kind]
    default: Value | ByMode[Value] | None
    sentence: str
    needs: tuple[str, ...] = ()
    products: tuple[str, ...] = PRODUCTS
    is_written: bool = False

    def in_mode(self, mode: str) -> Option:
        """Returns the option for one of DECODING_MODES."""
        kind: Kind = getattr(self.kind, mode) if isinstance(self.kind, ByMode) else self.kind
        default = getattr(self.default, mode) if isinstance(self.default, ByMode) else self.default
        return Option(self.name, default, kind, self.sentence)
