"""What a server and a reader exchange besides the changes: keepalives and status updates.

PostgreSQL sends single fields, big-endian. Source: PostgreSQL manual, "Streaming Replication Protocol".

GaussDB and openGauss send structs of C as they are in memory: little-endian, padded as by a 64-bit compiler. Only the
header of a data message is as PostgreSQL's. Source: openGauss-server 7e1fc94a,
src/include/replication/walprotocol.h, PrimaryKeepaliveMessage and StandbyReplyMessage; they are copied into messages by
WalSndKeepalive and ProcessStandbyReplyMessage of walsender.cpp and by sendFeedback of pg_recvlogical.cpp, and field by
field by V3PGReplicationStream.java of openGauss-connector-jdbc 6f4819bf.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from ..errors import BadLength


class Keepalive(NamedTuple):
    """A keepalive of a server.

    lsn    an LSN of the server's log; `Cutter` explains its meaning
    asks   whether the server asks for an answer now
    """

    lsn: int
    asks: bool


class Feedback(NamedTuple):
    """How a kind of server lays out both messages.

    server          the kind of server, for errors
    keepalive       the fields of its keepalive that are read: the second is the LSN, the last asks for an answer
    may_be_longer   whether a keepalive may have more fields
    status          packs a status update: LSN received, LSN safe, microseconds since 2000, whether an answer is wanted
    """

    server: str
    keepalive: struct.Struct
    may_be_longer: bool
    status: Callable[[int, int, int, bool], bytes]

    def read_keepalive(self, message: bytes) -> Keepalive:
        """Returns what a keepalive says; `message` begins with its letter.

        Raises BadLength: in another layout, the bytes of the LSN could be any number.
        """
        size, least = len(message), self.keepalive.size
        if size < least or (size > least and not self.may_be_longer):
            expected = f"{self.server}'s keepalive of {'at least ' if self.may_be_longer else ''}{least} bytes"
            raise BadLength(expected, f"{size} bytes", message_offset=0, path="keepalive", spot=message[:16])
        fields = self.keepalive.unpack_from(message)
        return Keepalive(fields[1], fields[-1])


_POSTGRES_STATUS = struct.Struct(">cQQQq?")
"""'r'; written, flushed and applied up to; time; whether an answer is wanted."""

_GAUSSDB_STATUS = struct.Struct("<cQQQQQiiq?3xI")
"""'r'; received, written, flushed, applied and read for applying up to; role and state; time; whether an answer is
wanted; flags, which are padding in earlier versions."""


def _postgres_status(received: int, safe: int, now_us: int, wants_answer: bool) -> bytes:
    return _POSTGRES_STATUS.pack(b"r", received, safe, safe, now_us, wants_answer)


def _gaussdb_status(received: int, safe: int, now_us: int, wants_answer: bool) -> bytes:
    # With shared storage, the server forgets its log up to what has been applied, not up to what has been flushed.
    return _GAUSSDB_STATUS.pack(b"r", received, received, safe, safe, safe, 0, 0, now_us, wants_answer, 0)


POSTGRES = Feedback("PostgreSQL", struct.Struct(">cQq?"), False, _postgres_status)
"""Keepalive: 'k', end of the log, time, whether an answer is wanted."""

GAUSSDB = Feedback("GaussDB", struct.Struct("<cQiiq?"), True, _gaussdb_status)
"""Keepalive: 'k', end of the log, role, state, time, whether an answer is wanted. Flags and padding follow: a version
has one flag, the next one three, 33 bytes in all."""

_FIRST_POSTGRES = 90400
"""The first PostgreSQL that decodes its log; GaussDB and openGauss report 9.2.4."""


def feedback_of(server_version: int) -> Feedback:
    """Returns the layout of a server that reports this version, such as 90204 for 9.2.4."""
    return GAUSSDB if server_version < _FIRST_POSTGRES else POSTGRES
