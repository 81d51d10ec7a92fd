"""The public functions: formats, options and engines put together. Each loads what it needs when it is first called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .events import Event
from .formats.registry import find_format
from .limits import BATCH_BYTES, OPEN_TRANSACTIONS_BYTES
from .options import ReadOptions

if TYPE_CHECKING:
    from .formats.guess import Guess
    from .stream.committed_changes import CommittedChanges, EventStore
    from .stream.decoder import Decoder as StreamDecoder
    from .stream.decoder import EventSource
    from .stream.positions import Position


def decode(messages: Any, format: str, *, engine: str = "scan", **options: Any) -> Iterator[Event]:
    """Yield the events of messages, in order.

    messages    an iterable of bytes-like objects, or a pyarrow binary array or chunked array; None gives no events. Of
                a generator, or anything else without a length, a message's events come before the next one is asked for
    options     those of `ReadOptions`: mode, encoding, encoding_errors, heartbeat_unit, tables, kinds, known_tables,
                exclude_users, skip_empty_xacts, strict
    Raises DecodeError in FAILFAST and OrderError with strict, after the events before it; OptionError at once. In
    FAILFAST an input of several messages in which all records are UNKNOWN is an error too, at its end, where they look
    like another format.
    """
    from .stream.judged import judged_events

    checked = ReadOptions.check(**options)
    source = _engine(format, checked, engine)
    return (located.event for located in judged_events(source, messages, format, checked))


def guess_format(messages: Iterable[Any]) -> Guess:
    """The likely format of messages, and why.

    messages    as `decode` takes them; the first 1000 are looked at
    returns     name, None where none fits or several fit alike; candidates, those that do; reason
    Raises TypeError for what holds no bytes.
    """
    from .formats.guess import guess_format as guess

    return guess(messages)


def Decoder(format: str, *, engine: str = "scan", **options: Any) -> StreamDecoder:  # noqa: N802 - reads as a class
    """A decoder for a live stream; the options are those of `decode`.

    `decode` gives the events of one whole message now. For bytes cut anywhere, `feed` them, take `events`, `close` at
    the end. `dropped` counts what DROPMALFORMED left out.
    """
    from .stream.decoder import Decoder as StreamDecoder

    checked = ReadOptions.check(**options)
    return StreamDecoder(find_format(format), _engine(format, checked, engine))


def encode(
    events: Iterable[Event],
    format: str,
    *,
    options: Mapping[str, Any] | None = None,
    encoding: str = "utf-8",
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[bytes]:
    """Yield the messages that a server with these options would send for the events.

    options         the servers' options by name, as `{"sending-batch": 1, "include-timestamp": True}`; defaults are the
                    servers': without include-timestamp, times are not written
    batch_bytes     with sending-batch, a message is closed once it is longer; what is left at the end is closed as the
                    server closes it after a second
    Raises EncodeError for what the format cannot say, OptionError at once.
    """
    from .plugin import Encoder, replay

    return replay(events, Encoder(format, batch_bytes=batch_bytes), options, encoding=encoding)


def transactions(
    events: Iterable[Event],
    *,
    two_phase: str = "commit",
    drop_resent: bool = True,
    memory_limit: int = OPEN_TRANSACTIONS_BYTES,
    after: Position | None = None,
) -> CommittedChanges:
    """The changes of committed transactions, in the order of the commits, each with the facts of its transaction.

    events          of one stream, in their order, with all kinds
    two_phase       "commit": a prepared transaction is delivered when it is committed; "prepare": when it is prepared
    drop_resent     leave out what was delivered before and came again after a restart
    memory_limit    about how many bytes of open transactions are held in memory; more go to files in a temporary folder
    after           the `position` of the one before, where this goes on with its `open` events and those behind them

    An iterator; `open` gives the events of what has not ended. docs/transactions.md says what is delivered, and when.
    Raises OrderError while iterating, and DecodeError at the end where several events came, all were UNKNOWN, and they
    look like a format that they were not read as; OptionError at once.
    """
    from .stream.committed_changes import CommittedChanges

    return CommittedChanges(
        events,
        make_store=_event_store,
        two_phase=two_phase,
        drop_resent=drop_resent,
        memory_limit=memory_limit,
        after=after,
    )


def _event_store() -> EventStore:
    from .arrow.committed.spill import EventSpill

    return EventSpill()


def _engine(format: str, options: ReadOptions, name: str) -> EventSource:
    from .arrow.engine.choice import make_engine

    return make_engine(find_format(format), options, name)
