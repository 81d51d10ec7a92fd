"""The public functions: formats, options and engines put together. Each loads what it needs when it is first called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .events import Event
from .formats.registry import find_format
from .limits import OPEN_TRANSACTIONS_BYTES, SENDER_BATCH_BYTES
from .options import ReadOptions
from .options.keywords import checks_keywords

if TYPE_CHECKING:
    from .formats.guess import Guess
    from .inspection import Inspection
    from .stream.committed_changes import CommittedChanges, EventStore
    from .stream.decoder import Decoder as StreamDecoder
    from .stream.decoder import EventSource
    from .stream.positions import Position


@checks_keywords
def decode(
    messages: Any,
    format: str,
    *,
    mode: str = "FAILFAST",
    tables: Iterable[str] | None = None,
    kinds: Iterable[str] | None = None,
    exclude_users: Iterable[str] | None = None,
    skip_empty_xacts: bool = False,
    strict: bool = False,
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    heartbeat_unit: str | None = None,
    known_tables: Iterable[str] | None = None,
    dialect: str = "postgresql",
    engine: str = "scan",
) -> Iterator[Event]:
    """Yields the events of messages, in order.

    messages    an iterable of bytes-like objects, or a pyarrow binary array or chunked array; None gives no events. An
                input without a length, such as a generator, is read message by message: the events of a message are
                yielded before the next message is requested
    engine      `scan`, or `declaration`, which is slow and reads every record by the declaration of its format
    The other options are those of `ReadOptions`.

    Raises OptionError when called. While iterating, raises DecodeError in FAILFAST mode and OrderError with strict,
    after yielding the events before the error; TypeError for messages that are not bytes; and LimitExceeded. In
    FAILFAST mode, raises DecodeError at the end of an input of several messages if all records are UNKNOWN and look
    like another format.
    """
    from .stream.judged import judged_events

    checked = ReadOptions.check(
        mode=mode,
        encoding=encoding,
        encoding_errors=encoding_errors,
        heartbeat_unit=heartbeat_unit,
        tables=tables,
        kinds=kinds,
        known_tables=known_tables,
        exclude_users=exclude_users,
        skip_empty_xacts=skip_empty_xacts,
        strict=strict,
        dialect=dialect,
    )
    source = _engine(format, checked, engine)
    return (located.event for located in judged_events(source, messages, format, checked))


@checks_keywords
def guess_format(messages: Iterable[Any]) -> Guess:
    """Returns the likely format of messages, and why.

    messages    as for `decode`; the first 1000 are examined
    returns     name, or None if no format or several formats match; candidates, the formats that match; reason

    Raises TypeError if a message is not bytes.
    """
    from .formats.guess import guess_format as guess

    return guess(messages)


@checks_keywords
def inspect(
    message: Any,
    format: str | None = None,
    *,
    before: Iterable[Any] = (),
    record: int | None = None,
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    known_tables: Iterable[str] | None = None,
    dialect: str = "postgresql",
) -> Inspection:
    """Returns a message as a tree: for every byte the field, its value and the rule of the format.

    message     bytes, whole or bad; bad bytes raise nothing: the tree ends where reading ended, and says why
    format      its name; None guesses, and `guess` of the result says why
    before      earlier messages of the stream, where records need them: pgoutput describes tables in advance
    record      only the record of this index; None shows all
    returns     an Inspection: print it, look at it in a notebook, or walk `records`, `leaves()` and `find(path)`
    encoding, encoding_errors, known_tables, dialect   as in `ReadOptions`

    docs/inspect.md shows trees. Raises OptionError for an unknown format or option, or if no format is given and none
    is recognised, and TypeError for messages that are not bytes.
    """
    from .inspection import inspect_message

    return inspect_message(
        message,
        format,
        before=before,
        record=record,
        encoding=encoding,
        encoding_errors=encoding_errors,
        known_tables=known_tables,
        dialect=dialect,
    )


@checks_keywords
def Decoder(  # noqa: N802 - reads as a class
    format: str,
    *,
    mode: str = "FAILFAST",
    tables: Iterable[str] | None = None,
    kinds: Iterable[str] | None = None,
    exclude_users: Iterable[str] | None = None,
    skip_empty_xacts: bool = False,
    strict: bool = False,
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    heartbeat_unit: str | None = None,
    known_tables: Iterable[str] | None = None,
    dialect: str = "postgresql",
    engine: str = "scan",
) -> StreamDecoder:
    """Returns a decoder for a live stream; the options are those of `decode`.

    `decode` returns the events of one whole message. For bytes that are cut anywhere, call `feed`, read `events`, and
    call `close` at the end. `dropped` counts the records that DROPMALFORMED skipped. Raises OptionError; the methods of
    the decoder also raise DecodeError (FAILFAST), OrderError (strict), TypeError and LimitExceeded.
    """
    from .stream.decoder import Decoder as StreamDecoder

    checked = ReadOptions.check(
        mode=mode,
        encoding=encoding,
        encoding_errors=encoding_errors,
        heartbeat_unit=heartbeat_unit,
        tables=tables,
        kinds=kinds,
        known_tables=known_tables,
        exclude_users=exclude_users,
        skip_empty_xacts=skip_empty_xacts,
        strict=strict,
        dialect=dialect,
    )
    return StreamDecoder(find_format(format), _engine(format, checked, engine))


@checks_keywords
def encode(
    events: Iterable[Event],
    format: str,
    *,
    options: Mapping[str, Any] | None = None,
    encoding: str = "utf-8",
    batch_bytes: int = SENDER_BATCH_BYTES,
) -> Iterator[bytes]:
    """Yields the messages that a server with these options would send for the events.

    options         the servers' options by name, such as `{"sending-batch": 1, "include-timestamp": True}`. The
                    defaults are those of the servers: in GaussDB's parallel styles, times need include-timestamp
    encoding        of the texts in the messages, by its Python name
    batch_bytes     with sending-batch, a message is closed when it becomes longer than this. The rest at the end is
                    closed as a server closes it after a second

    Raises OptionError and TypeError when called. While iterating, raises EncodeError for an event that the format
    cannot express, TypeError for an item that is not an event, and LimitExceeded for a record that is too long.
    """
    from .plugin import Encoder, replay

    return replay(events, Encoder(format, batch_bytes=batch_bytes), options, encoding=encoding)


@checks_keywords
def transactions(
    events: Iterable[Event],
    *,
    two_phase: str = "commit",
    drop_resent: bool = True,
    memory_limit: int = OPEN_TRANSACTIONS_BYTES,
    after: Position | None = None,
) -> CommittedChanges:
    """Returns the changes of committed transactions, in commit order, each with the facts of its transaction.

    events          the events of one stream, in order, of all kinds
    two_phase       "commit" delivers a prepared transaction when it is committed, "prepare" when it is prepared
    drop_resent     drop transactions that have been delivered before and are sent again after a restart
    memory_limit    approximate number of bytes of open transactions to hold in memory; more go to temporary files
    after           the `position` of an earlier result, to continue with its `open` events and the events after them
    returns         an iterator; its `open` returns the events of transactions that have not ended

    docs/transactions.md explains what is delivered, and when. Raises OptionError and TypeError when called. While
    iterating, raises OrderError, and TypeError for an item that is not an event. Raises DecodeError at the end if there
    were several events, all were UNKNOWN, and they look like another format.
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
