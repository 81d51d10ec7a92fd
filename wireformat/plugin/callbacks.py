"""The callbacks of an output plugin, and which of them go together.

Source: PostgreSQL manual, "Writing Logical Decoding Output Plugins" and "Streaming of Large Transactions for Logical
Decoding"; openGauss has abort and ddl besides.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from ..errors import PluginError
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
)
from .context import Context


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
