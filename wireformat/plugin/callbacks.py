"""The callbacks of an output plugin, what they share, and the writers of this package's formats as plugins.

Source: PostgreSQL manual, "Writing Logical Decoding Output Plugins" and "Streaming of Large Transactions for Logical
Decoding"; openGauss has abort and ddl besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from ..errors import PluginError, WireformatError, counted
from ..events import (
    Abort,
    Begin,
    Commit,
    CommitPrepared,
    Ddl,
    Event,
    Message,
    Prepare,
    RollbackPrepared,
    RowChange,
    StreamAbort,
    StreamChange,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Truncate,
    check_fields,
)
from ..formats.registry import find_format
from ..limits import SENDER_BATCH_BYTES
from ..options.checks import number

OUTPUT_TYPES = ("binary", "text")

SILENT = frozenset(("startup", "shutdown", "filter_by_origin", "filter_prepare"))
"""Callbacks in which the server accepts no output."""


class Context:
    """The server's LogicalDecodingContext, as far as a replay has one.

    options             as they were given to the replay; startup checks them
    encoding            Python's name of the encoding that textual output must be valid in
    output_type         binary (the server's default too) or text; set by startup
    receive_rewrites    set by startup. It changes nothing here: events do not say which rows a rewrite of a table wrote
    transaction         the Begin or StreamStart of the transaction or block that is open, else None
    """

    def __init__(self, options: Mapping[str, Any], encoding: str) -> None:
        self.options = options
        self.encoding = encoding
        self.output_type = "binary"
        self.receive_rewrites = False
        self.transaction: Begin | StreamStart | None = None
        self._callback = ""
        self._is_done = False
        self._out: bytearray | None = None
        self._messages: list[bytes] = []

    @property
    def out(self) -> bytearray:
        """The message that is being written, between prepare_write and write. Raises PluginError elsewhere."""
        if self._out is None:
            raise PluginError(f"{self._callback}: output only between prepare_write and write")
        return self._out

    @out.setter
    def out(self, value: bytearray) -> None:
        if value is not self.out:  # `ctx.out += …` sets what it has changed in place
            raise PluginError(f"{self._callback}: out takes more bytes, it is not replaced")

    def prepare_write(self, last_write: bool = True) -> None:
        """Begins a message. `last_write`: whether it is the last one of the callback. Raises PluginError."""
        if self._out is not None:
            raise PluginError(f"{self._callback}: prepare_write twice without write")
        self._check_write(last_write)
        self._out = bytearray()

    def write(self, last_write: bool = True) -> None:
        """Ends the message and sends it; `last_write` as in prepare_write. Raises PluginError."""
        message = bytes(self.out)
        if last_write is not self._is_done:
            raise PluginError(f"{self._callback}: prepare_write and write differ in last_write")
        self._out = None
        self._send(message)

    def send(self, message: bytes, last_write: bool = True) -> None:
        """Writes a whole message: the short form of prepare_write, `out` and write. Raises PluginError."""
        if self._out is not None:
            raise PluginError(f"{self._callback}: send between prepare_write and write")
        self._check_write(last_write)
        self._send(message)

    def _check_write(self, last_write: bool) -> None:
        if self._callback in SILENT:
            raise PluginError(f"{self._callback}: writes are not accepted here")
        if self._is_done:
            raise PluginError(f"{self._callback}: it has said that the write before was its last one")
        self._is_done = last_write

    def _send(self, message: bytes) -> None:
        if not isinstance(message, (bytes, bytearray, memoryview)):
            raise PluginError(f"{self._callback}: expected a message of bytes, got {type(message).__name__}")
        message = bytes(message)
        if self.output_type == "text":
            try:
                message.decode(self.encoding)
            except UnicodeDecodeError as error:
                place = f"byte {error.start} of a message of {counted(len(message), 'byte')}"
                raise PluginError(f"{self._callback}: expected text in {self.encoding}, got none at {place}") from None
        self._messages.append(message)

    def enter(self, callback: str) -> None:
        """A callback is about to be called."""
        self._callback = callback
        self._is_done = False

    def leave(self) -> list[bytes]:
        """The messages that it has written. Raises PluginError where one was not ended."""
        if self._out is not None:
            raise PluginError(f"{self._callback}: it ended between prepare_write and write")
        messages = self._messages
        if messages:
            self._messages = []
        return messages


class OutputPlugin:
    """Base of output plugins. A callback that a subclass does not define is one that the plugin does not have.

    Where the server gives a callback its structs, it gets the event with the same facts, and the context's
    `transaction` is the event that opened the transaction. Raises nothing by itself; what a callback raises goes to the
    caller of the replay.
    """

    def startup(self, ctx: Context) -> None:
        """Called first. It checks `ctx.options` (OptionError) and sets `ctx.output_type`. It must not write."""

    def shutdown(self, ctx: Context) -> None:
        """Called last, even after an error. It must not write."""

    def begin(self, ctx: Context, event: Begin) -> None:
        """A committed transaction begins; in `test-decoding`, which does not say so, also one to be prepared."""

    def change(self, ctx: Context, event: RowChange) -> None:
        """INSERT, UPDATE or DELETE of a row."""

    def truncate(self, ctx: Context, event: Truncate) -> None:
        """TRUNCATE of some tables together."""

    def commit(self, ctx: Context, event: Commit) -> None:
        """The transaction ends."""

    def message(self, ctx: Context, event: Message) -> None:
        """A message. A non-transactional one comes outside of transactions, or in the middle of another transaction."""

    def filter_by_origin(self, ctx: Context, origin: int | str | None) -> bool:
        """Returns whether a transaction is left out. It must not write.

        origin      as the stream says it: a number (GaussDB) or a name (pgoutput); None where it says none
        """
        return False

    def filter_prepare(self, ctx: Context, xid: int | None, gid: str) -> bool:
        """Returns whether a prepared transaction comes as an ordinary one, when it is committed. It must not write."""
        return False

    def begin_prepare(self, ctx: Context, event: Begin) -> None:
        """A transaction begins that will be prepared; the event has its gid."""

    def prepare(self, ctx: Context, event: Prepare) -> None:
        """The transaction is prepared."""

    def commit_prepared(self, ctx: Context, event: CommitPrepared) -> None:
        """A prepared transaction is committed."""

    def rollback_prepared(self, ctx: Context, event: RollbackPrepared) -> None:
        """A prepared transaction is rolled back."""

    def stream_start(self, ctx: Context, event: StreamStart) -> None:
        """A block of a transaction in progress begins."""

    def stream_stop(self, ctx: Context, event: StreamStop) -> None:
        """The block ends."""

    def stream_abort(self, ctx: Context, event: StreamAbort) -> None:
        """A streamed transaction or subtransaction is dropped."""

    def stream_prepare(self, ctx: Context, event: StreamPrepare) -> None:
        """A streamed transaction is prepared."""

    def stream_commit(self, ctx: Context, event: StreamCommit) -> None:
        """A streamed transaction is committed."""

    def stream_change(self, ctx: Context, event: RowChange | StreamChange) -> None:
        """A row changed, in a block. Of `test-decoding` it is a StreamChange, without the row."""

    def stream_message(self, ctx: Context, event: Message) -> None:
        """A transactional message, in a block."""

    def stream_truncate(self, ctx: Context, event: Truncate) -> None:
        """TRUNCATE, in a block."""

    def abort(self, ctx: Context, event: Abort) -> None:
        """openGauss: a transaction is dropped; only where an area of the log is decoded."""

    def ddl(self, ctx: Context, event: Ddl) -> None:
        """openGauss: the structure of the database changed."""

    def other(self, ctx: Context, event: Event) -> None:
        """Records for which a server calls no callback: RELATION, TYPE, ORIGIN, HEARTBEAT, UNKNOWN."""

    def flush(self, ctx: Context) -> None:
        """Called after the last event, to write what is still held back. No server calls it."""


CALLBACKS = tuple(name for name in vars(OutputPlugin) if not name.startswith("_"))
"""All names, in the order of the class."""

_BLOCKS = ("stream_start", "stream_stop", "stream_abort", "stream_commit", "stream_change")
STREAMING = frozenset((*_BLOCKS, "stream_message", "stream_truncate"))
TWO_PHASE = frozenset(
    ("begin_prepare", "prepare", "commit_prepared", "rollback_prepared", "stream_prepare", "filter_prepare")
)


class Rule(NamedTuple):
    """Callbacks that go together.

    what        the plugin that it is about
    given       for each set: the plugin has at least one of these
    needed      then it must have all of these
    """

    what: str
    given: tuple[Set[str], ...]
    needed: tuple[str, ...]


RULES = (
    Rule("every plugin", (), ("begin", "change", "commit")),
    Rule("a plugin with streaming", (STREAMING,), _BLOCKS),
    Rule(
        "a plugin with two-phase commit",
        (TWO_PHASE,),
        ("begin_prepare", "prepare", "commit_prepared", "rollback_prepared"),
    ),
    Rule("a plugin with streaming and two-phase commit", (STREAMING, TWO_PHASE), ("stream_prepare",)),
)
"""The server's. What is in no `needed` is optional: the event is left out where the callback is not there."""


def callbacks_of(plugin: OutputPlugin) -> frozenset[str]:
    """The names of the callbacks that a plugin has; raises PluginError where some are missing."""
    if not isinstance(plugin, OutputPlugin):
        raise PluginError(f"expected an OutputPlugin, got a {type(plugin).__name__}")
    found = frozenset(name for name in CALLBACKS if getattr(type(plugin), name) is not getattr(OutputPlugin, name))
    for rule in RULES:
        missing = [name for name in rule.needed if name not in found]
        if missing and all(found & names for names in rule.given):
            because = ", ".join(sorted(found & frozenset().union(*rule.given)))
            raise PluginError(
                f"{type(plugin).__name__}: {rule.what} has {', '.join(rule.needed)}; missing are {', '.join(missing)}"
                + (f"; it has {because}" if because else "")
            )
    return found


class Encoder(OutputPlugin):
    """Writes a format; the replay's options are those that shape it. Its output is declared as binary, since it also
    writes records of unknown kinds and contents that are no text.

    batch_bytes     with sending-batch, a message is closed once it is longer
    Raises OptionError. Its callbacks raise EncodeError for what the format cannot express, and TypeError for an event
    with a field of the wrong type.
    """

    def __init__(self, format: str, *, batch_bytes: int = SENDER_BATCH_BYTES) -> None:
        self._format = find_format(format)
        self._batch_bytes = number("batch_bytes", batch_bytes, 0)

    def startup(self, ctx: Context) -> None:
        """Checks the options."""
        self._writer = self._format.writer(ctx.options, encoding=ctx.encoding, batch_bytes=self._batch_bytes)

    def write(self, ctx: Context, event: Event) -> None:
        """Every callback: sends the messages that are complete with this event."""
        try:
            messages = self._writer.write(event)
        except WireformatError:
            raise
        except Exception:
            check_fields(event)  # only after a failure, because the check costs more than writing does
            raise
        _send(ctx, messages)

    begin = change = truncate = commit = message = abort = ddl = other = write
    begin_prepare = prepare = commit_prepared = rollback_prepared = write
    stream_start = stream_stop = stream_abort = stream_prepare = stream_commit = write
    stream_change = stream_message = stream_truncate = write

    def flush(self, ctx: Context) -> None:
        """Sends the rest of a batch."""
        _send(ctx, self._writer.flush())


def _send(ctx: Context, messages: list[bytes]) -> None:
    left = len(messages)
    for message in messages:
        left -= 1
        ctx.send(message, not left)
