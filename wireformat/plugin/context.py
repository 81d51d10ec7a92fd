"""What the callbacks of an output plugin share: options, the open transaction, and the way out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import PluginError, counted
from ..events import Begin, StreamStart

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
