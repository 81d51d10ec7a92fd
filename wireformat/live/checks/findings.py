"""`Finding`, the result of a check, and `Wanted`, what a stream needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ...errors import ServerError
from ...options import ReadOptions
from ...stream.capture_position import CapturePosition


class Finding(NamedTuple):
    """The result of a check.

    level    ok, note, warning, or error: then no stream starts
    check    what was checked
    text     what was found
    advice   what to do about it; empty if nothing
    passes   whether waiting may solve it
    """

    level: str
    check: str
    text: str
    advice: str = ""
    passes: bool = False

    @property
    def sentence(self) -> str:
        """All but the level."""
        return f"{self.check}: {self.text}" + (f"; {self.advice}" if self.advice else "")

    def __str__(self) -> str:
        return f"{self.level:7} {self.sentence}"


class Keeper(NamedTuple):
    """What keeps the position of a stream, with words for messages.

    noun       what it is
    anew       how to start over with another one
    slot       how to name another slot
    new_slot   how to create a slot
    lost       how to continue after a slot was lost
    """

    noun: str
    anew: str
    slot: str
    new_slot: str
    lost: str


LAKE = Keeper(
    "lake",
    "write to another folder, with a snapshot",
    "pass --slot",
    "pass --create-slot to create it; it sends only later changes; with pgoutput and --via streaming, "
    "`wireformat follow --snapshot` copies the existing rows",
    "begin another lake, with a new slot and a snapshot",
)
CHECKPOINT = Keeper(
    "checkpoint",
    "start with a new checkpoint, and load the existing rows first",
    "set the option slot to",
    "create it with wireformat.live.create_slot; it sends only later changes",
    "create a new slot, start with a new checkpoint, and load the existing rows first",
)


class Wanted(NamedTuple):
    """What a stream needs.

    position               where it continues; None at its beginning
    creates_slot           whether a missing slot is created
    keeper                 what keeps the position
    reading                has the patterns of the tables that are wanted
    copied                 the tables whose rows have been copied, if others are to be copied; None if none are to be
    named                  for each option that names tables, their patterns as ReadOptions has them
    earlier_publications   the publications with which the position was reached; None if they are not known
    """

    slot: str
    publications: Sequence[str]
    position: CapturePosition | None = None
    creates_slot: bool = False
    keeper: Keeper = LAKE
    reading: ReadOptions = ReadOptions()
    copied: Collection[tuple[str, str]] | None = None
    named: Mapping[str, Collection[tuple[str | None, str | None]]] = MappingProxyType({})
    earlier_publications: Sequence[str] | None = None


def raise_errors(found: Iterable[Finding]) -> None:
    """Raises ServerError with all findings that prevent a stream from starting."""
    errors = [one for one in found if one.level == "error"]
    if errors:
        raise ServerError(" | ".join(one.sentence for one in errors), is_temporary=all(one.passes for one in errors))
