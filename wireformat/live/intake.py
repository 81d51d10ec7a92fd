"""A thread that receives a stream and answers the server, while the stream is written elsewhere.

If START_REPLICATION is not available, SQL functions peek at the slot, and advance it afterwards.
"""

from __future__ import annotations

import math
import selectors
import threading
import time
from collections import deque
from collections.abc import Mapping

from ..errors import ServerError
from ..formats.registry import find_row
from ..framing.copy_data import ENVELOPE, HEAD
from ..framing.frames import layout
from ..lsn import lsn_text, lsn_value
from .connection import EPOCH_SECONDS, Connection
from .messages import Gathered
from .slots import end_on_disk, find_system
from .transaction_ends import Cutter, Piece

PIECE_BYTES = 4 << 20
"""A piece of messages is passed on when it is this large, or has waited for PIECE_SECONDS."""

PIECE_SECONDS = 0.05

QUIET_SECONDS = 0.01
"""A smaller piece is passed on after this time without new data. An idle thread also wakes up this often, to see
whether it was closed."""

NAP_SECONDS = 0.0003
"""How long to let bytes gather when all have been read: a server sends about 4 KB at a time, and a read costs as much
as many messages. With three times as long, a server that sends small transactions waits for room in its socket."""

STATUS_SECONDS = 10.0
"""The time between status updates if nothing has changed. The server's wal_sender_timeout is 60 s."""

END_SECONDS = 1.0
"""How long to wait until the server has read the last position and ended the stream, which is only a courtesy."""

SILENT_SECONDS = 120.0
"""A server that has not answered for this long is treated as lost, or for longer; see `silence_of`."""

WAITS_SECONDS, WAITS_ASKS = 10.0, 50
"""A server that asks this often in this time, and sends nothing, is being shut down, and waits until all that it has
sent is safe. If that takes longer, as between the batches of a query, the stream ends."""

QUIET_END_SECONDS = 5.0
"""After this time without changes, a server that does not say what it has sent is assumed to have sent all. GaussDB
sends what it has collected after a second. Later changes come in the next run, since no position depends on this."""

MOST_CHANGES = 20_000
"""Changes per peek. The server returns more if the last transaction exceeds the limit."""

POLL_SECONDS = 0.5
"""How often an idle slot is read."""

_ENVELOPE = layout(HEAD)


def silence_of(connection: Connection) -> float:
    """Returns after how many seconds without an answer a server is treated as lost. Raises ServerError.

    connection   a connection other than that of the stream, with the same settings

    A server that skips a large transaction answers nothing until half of wal_sender_timeout has passed, and nothing at
    all without that limit. TCP keepalives then find a server that is gone.
    """
    sql = "select setting from pg_catalog.pg_settings where name = 'wal_sender_timeout'"  # in milliseconds
    limits = [int(row["setting"] or 0) / 1000 or math.inf for row in connection.query(sql)]
    return max([SILENT_SECONDS, *(2 * limit for limit in limits)])


class Intake:
    """Receives a stream that has been started, in a thread. `close` also closes the connection.

    connection    a connection after `start`
    cutter        cuts the stream into pieces
    safe          the LSN before which everything is safe; see `confirm`
    queue_bytes   the most bytes that wait to be written; when there are more, nothing is received, and the server waits
    asks_every    how often the server is asked how far it is, in seconds. Messages outside of transactions, and
                  changes that are not published, do not show it
    silence       after how many seconds without an answer the server is treated as lost
    """

    def __init__(
        self,
        connection: Connection,
        cutter: Cutter,
        safe: int,
        *,
        queue_bytes: int,
        asks_every: float,
        silence: float = SILENT_SECONDS,
    ) -> None:
        self._connection = connection
        self._cutter = cutter
        self._safe = safe
        self._queue_bytes = queue_bytes
        self._asks_every = asks_every
        self._silence = silence
        self._received = 0
        self._changes_at = time.monotonic()
        self._pieces: deque[Piece] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="wireformat-live", daemon=True)
        self._thread.start()

    @property
    def received(self) -> int:
        """The LSN of the newest message or keepalive."""
        return self._received

    def take(self, seconds: float) -> Piece | None:
        """Returns the next piece; None if none comes within this number of seconds.

        Raises the errors of the thread: ServerError, Stopped and DecodeError.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._error, timeout=max(seconds, 0))
            if self._pieces:
                piece = self._pieces.popleft()
                self._waiting -= piece.messages.nbytes
                self._changed.notify_all()
                return piece
            if self._error is not None:
                raise self._error
            return None

    def is_quiet_at(self, lsn: int) -> bool:
        """Whether a server that decodes in parallel has read its log up to an LSN, and sent no changes for a while."""
        if not self._cutter.is_parallel or self._cutter.is_open or self._received < lsn:
            return False
        return time.monotonic() - self._changes_at >= QUIET_END_SECONDS

    def confirm(self, lsn: int) -> None:
        """Notes that everything before this LSN is safe. The thread soon tells the server."""
        self._safe = max(self._safe, lsn)

    def close(self) -> None:
        """Tells the server what is safe, and ends the thread and the connection."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._connection.socket, selectors.EVENT_READ)
                self._receive(selector)
        except BaseException as error:
            self._connection.close()  # at once: the received pieces may stay in the queue for long
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _receive(self, selector: selectors.BaseSelector) -> None:
        connection = self._connection
        heard = reported_at = asked_at = time.monotonic()
        reported = self._safe
        gathered, since = Gathered(), heard
        asks_since, asks_heard = heard, 0
        connection.report(self._safe, self._safe, wants_answer=True)
        while not self._is_closed:
            is_full = connection.receive(gathered, PIECE_BYTES)
            has_news = False
            if not is_full:
                has_news = connection.wait(selector, 0)
                if not has_news:
                    time.sleep(NAP_SECONDS)
                    has_news = connection.wait(selector, QUIET_SECONDS)
            asked = False
            if not gathered.sizes:
                since = time.monotonic()
            elif is_full or not has_news or time.monotonic() - since >= PIECE_SECONDS:
                piece = self._cutter.piece(gathered.array())
                gathered, since = Gathered(), time.monotonic()
                if len(piece.messages):
                    self._changes_at = time.monotonic()
                self._received = max(self._received, piece.received)
                asked = piece.asked
                asks_heard = asks_heard + 1 if asked and not len(piece.messages) else 0
                self._put(piece)
                heard = time.monotonic()  # it may have waited for room for a long time
            now = time.monotonic()
            if has_news:
                heard = now
            if now - heard > self._silence:
                raise ServerError(f"the server has not answered for {now - heard:.0f} seconds", is_temporary=True)
            if now - asks_since > WAITS_SECONDS:
                if asks_heard >= WAITS_ASKS:
                    raise ServerError("the server waits for the end of the stream: it shuts down", is_temporary=True)
                asks_since, asks_heard = now, 0
            asks = now - asked_at >= self._asks_every
            if asked or asks or self._safe > reported or now - reported_at >= STATUS_SECONDS:
                reported, reported_at = self._safe, now
                asked_at = now if asks else asked_at
                connection.report(max(self._received, reported), reported, wants_answer=asks)
        connection.report(max(self._received, self._safe), self._safe, wants_answer=False)
        connection.end(selector, END_SECONDS)

    def _put(self, piece: Piece) -> None:
        """Adds a piece when there is room; meanwhile, sends status updates to the server."""
        size = piece.messages.nbytes
        while True:
            with self._changed:
                if self._is_closed:
                    return
                if not self._pieces or self._waiting + size <= self._queue_bytes:
                    self._pieces.append(piece)
                    self._waiting += size
                    self._changed.notify_all()
                    return
                self._changed.wait(STATUS_SECONDS / 10)
            self._connection.report(max(self._received, self._safe), self._safe, wants_answer=False)


class SqlIntake:
    """Peeks at a slot by SQL functions, and advances it when the changes are safe. It has the methods of `Intake`.

    connection   a connection without replication
    cutter       cuts the stream into pieces
    slot         its name
    format       the format that its plugin sends
    options      the options of the plugin
    safe         the LSN before which everything is safe
    """

    def __init__(
        self, connection: Connection, cutter: Cutter, slot: str, format: str, options: Mapping[str, str], safe: int
    ) -> None:
        self._connection = connection
        self._cutter = cutter
        self._slot = connection.literal(slot)
        self._safe = 0
        self._is_waiting = False
        self._says_end = True
        self._changes_at = time.monotonic()
        self._is_binary = find_row(format).is_binary
        self.received = 0
        function = "pg_logical_slot_peek_binary_changes" if self._is_binary else "pg_logical_slot_peek_changes"
        listed = "".join(f", {connection.literal(text)}" for pair in options.items() for text in pair)
        self._sql = f"select * from pg_catalog.{function}({self._slot}, null, {MOST_CHANGES}{listed})"
        self.confirm(safe)  # the lake may have more than the server knows, which it would send again

    def take(self, seconds: float) -> Piece | None:
        """Returns what `Intake.take` returns, but None until the last piece is confirmed: it would come again."""
        if self._is_waiting:
            return None
        end = end_on_disk(self._connection) if self._says_end else None
        self._says_end = end is not None
        gathered = Gathered()
        for row in self._connection.query(self._sql):
            lsn, data = lsn_value(row.get("lsn") or row.get("location") or ""), row["data"] or ""
            payload = bytes.fromhex(data[2:]) if self._is_binary else data.encode(errors="surrogateescape")
            gathered.add(_ENVELOPE.pack(bytes([ENVELOPE]), lsn, lsn, _now_us()) + payload)
        piece = self._cutter.piece(gathered.array())
        self._is_waiting = bool(gathered.sizes)
        if not gathered.sizes:
            written = find_system(self._connection).flushed if end is None else end
            piece = piece._replace(lsn=end, received=written)
            time.sleep(min(max(seconds, 0), POLL_SECONDS))
        else:
            self._changes_at = time.monotonic()
            if piece.lsn is None:
                # Only messages outside of transactions. Their LSN is just after them, and all that ends before is here.
                piece = piece._replace(lsn=piece.received)
        self.received = piece.received
        return piece

    def is_quiet_at(self, lsn: int) -> bool:
        """Whether the server has written its log up to an LSN, and looks have found no changes for a while.

        It is only needed for a server that does not say how much of its log is on disk.
        """
        if self._says_end or self.received < lsn:
            return False
        return time.monotonic() - self._changes_at >= QUIET_END_SECONDS

    def confirm(self, lsn: int) -> None:
        """Tells the server that everything before this LSN is safe, so that it may forget it. Raises ServerError."""
        if lsn > self._safe:
            position = self._connection.literal(lsn_text(lsn))
            self._connection.query(f"select pg_catalog.pg_replication_slot_advance({self._slot}, {position})")
            self._safe = lsn
        self._is_waiting = False

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def _now_us() -> int:
    return int((time.time() - EPOCH_SECONDS) * 1e6)
