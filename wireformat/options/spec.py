"""A row of the table of options, for all modes and for one mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from ..errors import OptionError
from .kinds import Kind, Value

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
    needs       names in REQUIREMENTS of rules.py: what must hold for it to be given
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
