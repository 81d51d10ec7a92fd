"""Output plugins: the server's callbacks, and a replay that calls them with the events of a decoder, as a server would.

callbacks   what plugins have, and the writers of this package's formats as plugins
delivery    which events a plugin receives
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import EncodeError, OptionError, PluginError
from ..events import ROW_CHANGES, Begin, Corrupt, Event, Message, StreamStart, check_event
from ..options import ReadOptions
from ..options.checks import mapping
from ..options.keywords import checks_keywords
from ..options.reading import KINDS
from .callbacks import OUTPUT_TYPES, STREAMING, TWO_PHASE, Context, Encoder, OutputPlugin, callbacks_of
from .delivery import Delivery, whole_transactions

__all__ = ["Context", "Encoder", "OutputPlugin", "replay", "whole_transactions"]


def __dir__() -> list[str]:
    return sorted(__all__)


OUTSIDE = {
    **{kind: kind.lower() for kind in KINDS if kind != "CORRUPT"},
    **dict.fromkeys(ROW_CHANGES, "change"),
    **dict.fromkeys(("RELATION", "TYPE", "ORIGIN", "HEARTBEAT", "UNKNOWN"), "other"),
}
"""The callback for each kind of event; BEGIN with a gid is begin_prepare."""

IN_BLOCK = {
    **OUTSIDE,
    **dict.fromkeys(ROW_CHANGES, "stream_change"),
    "TRUNCATE": "stream_truncate",
    "MESSAGE": "stream_message",
}
"""The same between STREAM_START and STREAM_STOP, but for messages that are not transactional."""

_ENDS = frozenset(("COMMIT", "ABORT", "PREPARE", "STREAM_STOP"))
_SPECIAL = frozenset(("BEGIN", "STREAM_START", "MESSAGE", "CORRUPT"))
"""Kinds for which the tables do not say all."""


@checks_keywords
def replay(
    events: Iterable[Event],
    plugin: OutputPlugin,
    options: Mapping[str, Any] | None = None,
    *,
    encoding: str = "utf-8",
) -> Iterator[bytes]:
    """Yields the messages that a plugin writes for events, calling it as a server would.

    options     the plugin's; its startup checks them, and a plugin without startup takes none
    encoding    of textual output
    The order of events is taken as it is: a decoder with `strict=True` checks it. A transaction that the plugin takes
    only as a whole (see Delivery) is held in memory until its end.
    Raises PluginError and OptionError at once for a plugin or options that the server refuses; later PluginError for
    what a callback must not do, EncodeError for CORRUPT, and what callbacks raise.
    """
    if not isinstance(events, Iterable):
        raise TypeError(f"events: expected an iterable of events, got {type(events).__name__}")
    found = callbacks_of(plugin)
    given = mapping("options", options)
    ctx = Context(given, ReadOptions.check(encoding=encoding).encoding)
    if given and "startup" not in found:
        names = ", ".join(map(str, given))
        raise OptionError(f"{type(plugin).__name__} has no startup, so it takes no options; got {names}")
    ctx.enter("startup")
    plugin.startup(ctx)
    ctx.leave()
    if ctx.output_type not in OUTPUT_TYPES:
        expected = " or ".join(OUTPUT_TYPES)
        raise PluginError(f"startup: expected output_type {expected}, got {ctx.output_type!r}")
    return _messages(_delivered(map(check_event, events), plugin, found, ctx), plugin, found, ctx)


def _delivered(events: Iterable[Event], plugin: OutputPlugin, found: frozenset[str], ctx: Context) -> Iterator[Event]:
    def filter_by_origin(origin: int | str | None) -> bool:
        ctx.enter("filter_by_origin")
        return plugin.filter_by_origin(ctx, origin)

    def filter_prepare(xid: int | None, gid: str) -> bool:
        ctx.enter("filter_prepare")
        return plugin.filter_prepare(ctx, xid, gid)

    delivery = Delivery(
        streaming=bool(found & STREAMING),
        two_phase=bool(found & TWO_PHASE),
        filter_by_origin=filter_by_origin if "filter_by_origin" in found else None,
        filter_prepare=filter_prepare if "filter_prepare" in found else None,
    )
    return iter(events) if delivery.is_all else delivery.deliver(events)


def _messages(events: Iterator[Event], plugin: OutputPlugin, found: frozenset[str], ctx: Context) -> Iterator[bytes]:
    outside, in_block = (
        {kind: (name, getattr(plugin, name)) for kind, name in table.items() if name in found}
        for table in (OUTSIDE, IN_BLOCK)
    )
    begin_prepare = ("begin_prepare", plugin.begin_prepare) if "begin_prepare" in found else None
    table = outside
    try:
        for event in events:
            kind = event.kind
            chosen = table.get(kind)
            if kind in _SPECIAL:
                if isinstance(event, (Begin, StreamStart)):
                    ctx.transaction = event
                    if isinstance(event, StreamStart):
                        table = in_block
                    elif event.gid is not None:
                        chosen = begin_prepare
                elif isinstance(event, Message) and not event.transactional:
                    chosen = outside.get(kind)
                elif isinstance(event, Corrupt):
                    raise EncodeError("CORRUPT: the format cannot say it: no plugin is given what could not be read")
            if chosen is not None:
                ctx.enter(chosen[0])
                chosen[1](ctx, event)
                yield from ctx.leave()
            if kind in _ENDS:
                ctx.transaction = None
                table = outside
        if "flush" in found:
            ctx.enter("flush")
            plugin.flush(ctx)
            yield from ctx.leave()
    finally:
        ctx.enter("shutdown")
        plugin.shutdown(ctx)
