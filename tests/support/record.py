"""What the conformance tests need to know of a format: a record with the same fields for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import wireformat as wf
from wireformat.formats.registry import find_row

MANY = 1 << 40
"""More bytes than any batch has: nothing is closed by size."""

ENDS = {"gauss_batch": "all", "text_batch": "batches", "line_feeds": "all", "frames": "none", "copy_data": "none"}
"""By the module of the framing: which messages say where they end."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A small good message.

    events     what it says, where it was written down by hand
    written    how the encoder writes it, where that is another way
    reading    the options with which it is read
    writing    the options with which it is written, beside those of the format
    batch_bytes    the size at which the encoder closes it
    """

    message: bytes
    events: Sequence[wf.Event] | None = None
    written: bytes | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    writing: Mapping[str, Any] = field(default_factory=dict)
    batch_bytes: int = MANY
    one_in: int = 1
    """One in this many mutants is tried, and every truncation."""


@dataclass(frozen=True, kw_only=True)
class Bad:
    """A bad message.

    facts   what its error says: attributes by name, `type`, and `text`, which leaves out the number of the message
    good    messages that say what the records before the bad spot do; None where no test has them
    """

    message: bytes
    facts: Mapping[str, Any]
    good: Sequence[bytes] | None = None


def no_options(events: Sequence[wf.Event]) -> dict[str, Any]:
    """A reader of most formats needs to be told nothing about the events."""
    return {}


def unchanged(event: wf.Event) -> wf.Event:
    """Most formats change nothing."""
    return event


@dataclass(frozen=True, kw_only=True)
class Support:
    """One format.

    good       a message with one row change
    stream     a transaction: BEGIN, row changes with texts as values, COMMIT
    samples    small good messages of every shape
    bad        bad messages
    events     given an encoding, generates events that come back as they are; each list is a stream
    before     messages that must come first, each with one event
    probes     messages whose meaning earlier ones may change: they are put between bad ones
    reduced    an event without what the format is known to change
    known      the options without which these events cannot be read
    writing    the options with which the encoder writes all that an event has
    splices    pairs of messages, to be cut and put together at every `splice_step` bytes
    readings   options to read bad messages with, beside those that all formats have
    lies       short messages that claim to be long
    options    values of its own options of reading
    has_lengths    whether values have lengths: an error shows the four bytes of one, also where a value is
    """

    format: str
    good: bytes
    stream: Sequence[wf.Event]
    samples: Mapping[str, Sample]
    bad: Mapping[str, Bad]
    events: Callable[[str], SearchStrategy[list[wf.Event]]]
    before: Sequence[bytes] = ()
    probes: Sequence[bytes] = ()
    known: Callable[[Sequence[wf.Event]], dict[str, Any]] = no_options
    reduced: Callable[[wf.Event], wf.Event] = unchanged
    writing: Mapping[str, Any] = field(default_factory=dict)
    splices: Sequence[tuple[bytes, bytes]]
    splice_step: int = 3
    readings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    lies: Mapping[str, bytes] = field(default_factory=dict)
    options: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    has_lengths: bool = False

    @property
    def is_batched(self) -> bool:
        """Whether the server's options have batches."""
        return any(option.name == "sending-batch" for option in find_row(self.format).options)

    @property
    def is_a_stream(self) -> bool:
        """Whether messages may say where they end."""
        return self._ends != "none"

    @property
    def _ends(self) -> str:
        return ENDS[find_row(self.format).framing.rpartition(".")[2]]

    def says_its_end(self, message: bytes) -> bool:
        """Whether a decoder can tell where this message ends. A text that is alone begins with a letter or a brace."""
        return self._ends == "all" or (self._ends == "batches" and message[:1] < b"A")


def alone(events: SearchStrategy[wf.Event]) -> SearchStrategy[list[wf.Event]]:
    """Streams of one event."""
    return st.builds(lambda event: [event], events)
