"""The writers of this package's formats as output plugins."""

from __future__ import annotations

from ..errors import WireformatError
from ..events import Event, check_fields
from ..formats.registry import find_format
from ..limits import SENDER_BATCH_BYTES
from ..options.checks import number
from .callbacks import OutputPlugin
from .context import Context


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
