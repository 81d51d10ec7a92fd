"""A connection to a server: queries, and the replication protocol.

Source: PostgreSQL manual, "Streaming Replication Protocol" and "Logical Streaming Replication Protocol".
"""

from __future__ import annotations

import re
import selectors
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ..errors import OptionError, ServerError, counted
from ..lsn import lsn_text
from ..options.checks import one_of
from ..options.gaussdb import FOLLOWED_VIA
from .driver import Target, find_target, server_version
from .messages import Feedback, Gathered, feedback_of

EPOCH_SECONDS = 946_684_800
"""2000-01-01 UTC, from which servers count."""

STEADY_SECONDS = 30.0
"""A connection that has lasted so long was no failure, also if nothing was written: attempts are counted anew."""

STOP_SECONDS = 0.5
"""How soon a statement or a copy notices that it is to stop."""


class Stopped(Exception):
    """The event `stop` of a connection was set while it waited for the server."""


class Connection:
    """A connection with `replication=database`. It runs queries, or a stream that starts before any query.

    dsn      connection string or URL of libpq
    driver   psycopg or gaussdb
    via      streaming, or sql: a plain connection, for queries only
    stop     when it is set, a wait for the server is cancelled, and a copy ends

    `version` is the major version of the server; GaussDB and openGauss report 9. `feedback` is how the server lays out
    keepalives and status updates. `on_wait` is called from time to time during a wait for an answer.

    Raises Stopped, ServerError, whose texts never have a password, and what `find_target` raises.
    """

    def __init__(
        self, dsn: str, driver: str = "psycopg", *, via: str = "streaming", stop: threading.Event | None = None
    ) -> None:
        self.replicates = one_of("via", via, FOLLOWED_VIA) == "streaming"
        self._stop = stop or threading.Event()
        self.on_wait: Callable[[], None] = lambda: None
        self.target: Target = find_target(dsn, driver, **({"replication": "database"} if self.replicates else {}))
        self._pq = self.target.pq
        self._connection: Any
        self._gap: str | None = None
        self._has_queried = False
        try:
            connection = self._connect()
            number = server_version(connection)
            self.version = number // 10_000
            self._set()
        except BaseException:
            self.close()
            raise
        connection.notice_handler = self._take_notice
        self._escaping = self._pq.Escaping(connection)
        self.feedback: Feedback = feedback_of(number)

    def _connect(self) -> Any:
        """Connects to the first server that answers. A refusal that stays ends the attempts, as in libpq."""
        failures: list[str] = []
        for conninfo in self.target.attempts:
            self._connection = self._pq.PGconn.connect_start(conninfo.encode())
            # Now the password of a password file or a service is also known.
            self.target = self.target.with_secret(bytes(self._connection.password or b"").decode("utf-8", "replace"))
            failure = self._attempt(self._connection)
            if failure is None:
                return self._connection
            failures.append(failure)
            if not _may_pass(failure):
                break
            self.close()
        told = "; ".join(dict.fromkeys(failures))
        raise ServerError(f"connection to {self.target.shown}: {told}", is_temporary=_may_pass(failures[-1]))

    def _attempt(self, connection: Any) -> str | None:
        """Connects. Returns why it failed, or None. Other threads run meanwhile, unlike in `PGconn.connect`."""
        deadline = time.monotonic() + self.target.seconds
        polling = self._pq.PollingStatus
        status = polling.WRITING
        while status in (polling.READING, polling.WRITING):
            if connection.status == self._pq.ConnStatus.BAD:
                break
            event = selectors.EVENT_READ if status == polling.READING else selectors.EVENT_WRITE
            with selectors.DefaultSelector() as selector:
                selector.register(connection.socket, event)
                while not selector.select(min(max(deadline - time.monotonic(), 0), STOP_SECONDS)):
                    if self._stop.is_set():
                        raise Stopped
                    if time.monotonic() >= deadline:
                        host = (connection.host or b"the server").decode("utf-8", "replace")
                        limit = counted(round(self.target.seconds), "second")
                        return self._words(f'no answer from "{host}" within {limit}')
            status = connection.connect_poll()
        return None if status == polling.OK else self._words(connection.get_error_message())

    def _set(self) -> None:
        """Sets what no option of the connection can.

        Copies, slots and streams take their time. libpq sends PGDATESTYLE after the driver's settings. A server that
        does not know the encoding of its texts sends them as they are, and not only those in UTF-8.
        """
        status = self._connection.parameter_status
        settings = [f"{name} = 0" for name, first in _TIMEOUTS.items() if self.version >= first]
        if not (status(b"DateStyle") or b"ISO").startswith(b"ISO"):
            settings.append("datestyle = ISO")
        if status(b"server_encoding") == b"SQL_ASCII":
            settings.append("client_encoding = SQL_ASCII")
        for one in settings:  # old servers take one statement of a replication connection at a time
            self._check(self._result(f"SET {one}"), self._pq.ExecStatus.COMMAND_OK)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def process(self) -> int:
        """The process ID of the server's session."""
        return int(self._connection.backend_pid)

    @property
    def socket(self) -> int:
        """The file descriptor."""
        return int(self._connection.socket)

    def identifier(self, name: str) -> str:
        """Returns a name, quoted for a statement; raises OptionError for text that cannot be sent."""
        return bytes(self._escaping.escape_identifier(_checked(name))).decode()

    def literal(self, text: str) -> str:
        """Returns a text, quoted for a statement; raises OptionError for text that cannot be sent."""
        return bytes(self._escaping.escape_literal(_checked(text))).decode()

    def query(self, sql: str) -> list[dict[str, str | None]]:
        """Returns the rows of a statement, or of the last of several, as texts by column names. Raises as the class.

        Bytes that are not UTF-8 are as with `surrogateescape`.
        """
        self._has_queried = True
        result = self._result(sql)
        self._check(result, self._pq.ExecStatus.TUPLES_OK, self._pq.ExecStatus.COMMAND_OK)
        names = [result.fname(column).decode() for column in range(result.nfields)]
        rows = []
        for row in range(result.ntuples):
            values = [result.get_value(row, column) for column in range(result.nfields)]
            texts = [None if value is None else value.decode(errors="surrogateescape") for value in values]
            rows.append(dict(zip(names, texts, strict=True)))
        return rows

    def copy(self, sql: str) -> Iterator[bytes]:
        """Yields the rows of a COPY … TO STDOUT. Raises as the class."""
        self._check(self._result(sql), self._pq.ExecStatus.COPY_OUT)
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            while True:
                try:
                    size, row = self._connection.get_copy_data(1)
                except Exception as error:
                    raise self._lost(error) from None
                if size < 0:
                    break
                if size == 0:
                    self._wait_for_answer(selector)
                else:
                    yield bytes(row)
        self._end_of_copy()

    def check_stopped(self) -> None:
        """If `stop` is set, cancels the server's current statement and raises Stopped."""
        if self._stop.is_set():
            self._cancel()
            raise Stopped

    def _cancel(self) -> None:
        with suppress(Exception):  # a courtesy: the server would notice the end of the connection later
            self._connection.get_cancel().cancel()

    def _wait_for_answer(self, selector: selectors.BaseSelector) -> None:
        """Waits for bytes from the server, however long it takes.

        An exception that ends the wait, such as that of Ctrl-C, cancels the server's current statement, which might
        otherwise create a slot that is not read.
        """
        try:
            while not selector.select(STOP_SECONDS):
                if self._stop.is_set():
                    raise Stopped
                self.on_wait()
        except BaseException:
            self._cancel()
            raise
        self._take_input()

    def start(self, slot: str, lsn: int, options: Mapping[str, str]) -> None:
        """Starts to stream a logical slot.

        lsn       where to start; if the slot is at a later LSN, the server starts there without notice
        options   of the output plugin

        The connection must not have made queries: a session remembers the tables that its queries have used, and would
        decode changes from before an ALTER TABLE with the columns that the table has now. Raises as the class.
        """
        assert not self._has_queried, "a session that has made queries must not stream"
        listed = ", ".join(f"{self.identifier(name)} {_option_literal(value)}" for name, value in options.items())
        command = f"START_REPLICATION SLOT {self.identifier(slot)} LOGICAL {lsn_text(lsn)}"
        self._check(self._result(f"{command} ({listed})" if listed else command), self._pq.ExecStatus.COPY_BOTH)

    def receive(self, gathered: Gathered, most_bytes: int) -> bool:
        """Adds the messages that have arrived, as bytes of CopyData, until there are `most_bytes`.

        Returns whether there may be more. Raises ServerError if the stream has ended, or leaves changes out.
        """
        # One object per message, which is freed at once: that takes 1.6 µs, as receiving and dropping a message does.
        get, append, write = self._connection.get_copy_data, gathered.sizes.append, gathered.write
        left, size = most_bytes - gathered.size, 0
        while left > 0:
            try:
                size, data = get(1)
            except Exception as error:
                raise self._lost(error) from None
            if size <= 0:
                break
            write(data)
            append(size)
            left -= size
        gathered.size = most_bytes - left
        if self._gap is not None:
            raise ServerError(self._gap)
        if size < 0:
            self._end_of_copy()
            raise ServerError("the server has ended the stream", is_temporary=True)
        return left <= 0

    def wait(self, selector: selectors.BaseSelector, seconds: float | None) -> bool:
        """Waits for bytes from the server, without a limit if `seconds` is None. Returns whether there are any."""
        if not selector.select(seconds):
            return False
        self._take_input()
        return True

    def _take_input(self) -> None:
        """Reads the bytes that the server has sent."""
        try:
            self._connection.consume_input()
        except Exception as error:
            raise self._lost(error) from None

    def report(self, received: int, safe: int, *, wants_answer: bool) -> None:
        """Tells the server how far the stream was received, and how far it is safe: it may forget its log up to there.

        Raises ServerError.
        """
        now = int((time.time() - EPOCH_SECONDS) * 1e6)
        try:
            self._connection.put_copy_data(self.feedback.status(received, safe, now, wants_answer))
            self._connection.flush()
        except Exception as error:
            raise self._lost(error) from None

    def end(self, selector: selectors.BaseSelector, seconds: float) -> None:
        """Ends the stream, and waits for up to some seconds until the server has released the slot.

        The server has then read what was reported, and the slot can be used at once.
        """
        deadline = time.monotonic() + seconds
        self._connection.put_copy_end()
        self._connection.flush()
        size = 0
        while size >= 0 and time.monotonic() < deadline:
            size, _ = self._connection.get_copy_data(1)
            if size == 0:
                self.wait(selector, max(deadline - time.monotonic(), 0))
        # The server answers with CopyDone while the slot is still its own, and ends the command when it is not.
        while size < 0 and time.monotonic() < deadline:
            if self._connection.is_busy():
                self.wait(selector, max(deadline - time.monotonic(), 0))
            elif self._connection.get_result() is None:
                return

    def close(self) -> None:
        """Closes the connection."""
        self._connection.finish()

    def _result(self, sql: str) -> Any:
        """Returns the result of a statement, or of the last of several.

        It waits as `exec_` does, but in Python, which handles signals: the creation of a slot may take long.
        """
        connection, found = self._connection, None
        try:
            connection.send_query(sql.encode())
            connection.flush()
        except Exception as error:
            raise self._lost(error) from None
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            while True:
                try:
                    while connection.is_busy():
                        self._wait_for_answer(selector)
                except ServerError:
                    if found is None:
                        raise
                    return found  # this result says why the server has ended the connection
                result = connection.get_result()
                if result is None:
                    return found
                found = result
                if result.status in (self._pq.ExecStatus.COPY_OUT, self._pq.ExecStatus.COPY_BOTH):
                    return found

    def _take_notice(self, notice: Any) -> None:
        """Notes a warning that a plugin leaves changes out.

        From PostgreSQL 18 on, pgoutput goes on without a publication that does not exist.
        """
        fields = self._pq.DiagnosticField
        if notice.error_field(fields.SEVERITY_NONLOCALIZED) != b"WARNING" or self._gap is not None:
            return
        if notice.error_field(fields.SQLSTATE) == _NOT_READY:
            texts = (notice.error_field(name) for name in (fields.MESSAGE_PRIMARY, fields.MESSAGE_DETAIL))
            said = self._words(". ".join(text.decode(errors="replace") for text in texts if text))
            self._gap = (
                f"the stream leaves changes out: {said.rstrip('.')}. Changes of its tables from there on are in no "
                "later stream of the slot: make the publication, then a new slot, and begin anew with the rows that "
                "the tables have"
            )

    def _end_of_copy(self) -> None:
        """Reads the results after a copy; raises ServerError if one is an error."""
        while (result := self._connection.get_result()) is not None:
            self._check(result, self._pq.ExecStatus.COMMAND_OK, self._pq.ExecStatus.COPY_IN)
            if result.status == self._pq.ExecStatus.COPY_IN:
                return

    def _check(self, result: Any, *allowed: Any) -> None:
        """Raises ServerError for a result whose status is not one of those allowed."""
        if result.status in allowed:
            return
        state = result.error_field(self._pq.DiagnosticField.SQLSTATE)
        code = None if state is None else state.decode()
        text = self._words(result.get_error_message()) or f"unexpected answer {result.status}"
        if code == _DISK_FULL:
            text = f"the server's disk is full: {text}"
        if code == _UNDEFINED and result.error_field(self._pq.DiagnosticField.CONTEXT):  # in a callback of the plugin
            text += (
                "; if it is there now, it was not under this name when the change was made, which cannot be decoded "
                "then: begin anew, with a new slot and the rows that the tables have"
            )
        may_pass = (
            code is None
            or code in _TEMPORARY
            or (code == "XX000" and _DROPPED in text)
            or (code == _BROKEN_PROTOCOL and _may_pass(text) and any(words in text for words in _POOLER))
        )
        raise ServerError(text, sqlstate=code, is_temporary=may_pass)

    def _lost(self, error: Exception) -> ServerError:
        """Returns what an OperationalError of the driver means."""
        return ServerError(f"the connection was lost: {self._words(str(error))}", is_temporary=True)

    def _words(self, text: str) -> str:
        """Returns a text of libpq in one line, without secrets."""
        return self.target.masked(re.sub(r"\s*\n\s*(?=[A-Z])", "; ", text.strip()))


_TIMEOUTS = {
    "statement_timeout": 10,
    "lock_timeout": 10,
    "idle_in_transaction_session_timeout": 10,
    "idle_session_timeout": 14,
    "transaction_timeout": 17,
}
"""Limits that a role or database may have, and the PostgreSQL from which on they are set to none: a server refuses
names that it does not know, and so the whole connection if they are among its options."""

_NOT_READY = b"55000"
"""SQLSTATE of an object that is not in the state that is needed."""

_UNDEFINED = "42704"
"""SQLSTATE of a name, as of a publication, that is not there."""

_DISK_FULL = "53100"
"""SQLSTATE of a server that cannot write."""

_TEMPORARY = (
    "08000",
    "08001",
    "08003",
    "08006",
    "08007",
    "40001",
    "57P01",
    "57P02",
    "57P03",
    "57P05",
    "53300",
    "55006",
    _DISK_FULL,
)
"""SQLSTATEs of errors that may pass: a lost connection, a conflict with the log that a standby replays, a server that
starts or stops, too many connections, an active slot, a full disk. A broken protocol (08P01), a refusal (08004) and a
dropped database (57P04) do not pass, though they are of the same classes."""

_BROKEN_PROTOCOL = "08P01"

_POOLER = (
    "server conn crashed?",
    "server login has been failing",
    "server shutting down",
    "query_wait_timeout",
)
"""Errors of PgBouncer that may pass, which have the SQLSTATE of a broken protocol: its connection to the server was
lost, or it gets none. Source: pgbouncer, src/server.c, objects.c and janitor.c; send_pooler_error of proto.c."""

_DROPPED = "could not open relation with OID"
"""A part of the error of the view of published tables if one of them is dropped meanwhile."""


def _may_pass(text: str) -> bool:
    """Whether a connection may succeed later, by libpq's error, which has no SQLSTATE, and has names in quotes."""
    said = re.sub('"[^"]*"', "", text)
    return not any(words in said for words in ("password", "authentication", "does not exist", "pg_hba", "permission"))


def _option_literal(text: str) -> str:
    """Returns a quoted value of an option of START_REPLICATION, whose grammar has no escapes by backslashes."""
    return "'" + _checked(text).decode().replace("'", "''") + "'"


def _checked(text: str) -> bytes:
    """Returns a name or value as UTF-8; raises OptionError for a zero byte, at which libpq would cut it."""
    data = text.encode("utf-8", "surrogatepass")
    if b"\0" in data or data.decode("utf-8", "replace") != text:
        raise OptionError("names and options: expected valid text without zero bytes")
    return data
