"""Where every byte of a message went in PERMISSIVE mode: into a decoded record, its framing, or one `raw`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import wireformat as wf
from wireformat.identifiers import quote_identifier

from .engines import CHECKS_BOUNDS, FORMAT

LENGTH_AND_LSN = 12
ENVELOPE_BYTES = 25
_SERIAL = {"include-timestamp": True}
_PARALLEL = {"include-timestamp": True, "include-originid": True, "include-user": True}
_BATCHED = ("gaussdb-json", "gaussdb-text")
EVERYTHING: dict[str, dict[str, bool]] = {
    "gaussdb-binary": _PARALLEL,
    "gaussdb-json": _PARALLEL,
    "gaussdb-text": _PARALLEL,
    "mppdb-json": {**_SERIAL, "include-originid": True},
    "opengauss-test-decoding": _SERIAL,
    "sql-decoding": _SERIAL,
    "test-decoding": _SERIAL,
    "pgoutput": {},
}
"""Options with which each format's encoder writes all that an event has."""


def account(message: bytes, events: Sequence[wf.Event], format: str = FORMAT) -> None:
    """Walk a message along its events; fails at the first byte that is in no place, or in two.

    The walk reads the framing by itself. A good record's body must be as long as what the event says takes in bytes; a
    raw must be the very bytes at its place.
    """
    if format == "pgoutput":
        _account_replication(message, events)
        return
    if format != FORMAT:
        is_alone = format not in _BATCHED or (message and message[0] >= 0x42)
        _account_texts(message, list(events), is_alone)
        return
    at = 0
    left = list(events)
    while left:
        event = left.pop(0)
        if isinstance(event, wf.Corrupt) and event.lsn is None:
            assert event.raw == message[at:], f"the rest from byte {at} on is not the raw of the last row"
            assert not left, "rows after the rest of the message"
            return
        at = _record(message, at, event)
        at, ended = _separator(message, at)
        if ended:
            if at == len(message):
                assert not left, "rows after the end of the message"
                return
            assert len(left) == 1, f"bytes from {at} on are in no row"
    raise AssertionError(f"the rows end at byte {at} of {len(message)}, before the message does")


def account_all(
    messages: Sequence[bytes | None], by_message: Mapping[int, Sequence[wf.Event]], format: str = FORMAT
) -> None:
    """`account` for every message; null messages have no rows. A run that checks bounds has the rows of other runs."""
    if CHECKS_BOUNDS:
        return
    for index, message in enumerate(messages):
        if message is None:
            assert index not in by_message
        else:
            account(message, by_message.get(index, ()), format)


def _account_replication(message: bytes, events: Sequence[wf.Event]) -> None:
    """One message is one record, in its envelope or without; an envelope with nothing in it is bad as a whole."""
    (event,) = events
    is_enveloped = message[:1] == b"w" and len(message) > ENVELOPE_BYTES
    assert not is_enveloped or event.lsn is not None
    if isinstance(event, (wf.Corrupt, wf.Unknown)):
        assert event.raw == (message[ENVELOPE_BYTES:] if is_enveloped else message)


def _account_texts(message: bytes, left: list[wf.Event], is_alone: bool) -> None:
    """The same for texts: batched with length and LSN up to a zero length, or alone. A good record takes all its bytes.

    Whether a good record says all that is in its bytes is for the round trips to show.
    """
    if is_alone:
        (event,) = left
        assert not isinstance(event, (wf.Corrupt, wf.Unknown)) or event.raw == message
        return
    at = 0
    while message[at : at + 4] != bytes(4):
        assert left, f"the rows end at byte {at} of {len(message)}"
        event = left.pop(0)
        if isinstance(event, wf.Corrupt) and event.lsn is None:
            assert event.raw == message[at:]
            assert not left
            return
        length = int.from_bytes(message[at : at + 4], "big")
        assert event.lsn == int.from_bytes(message[at + 4 : at + LENGTH_AND_LSN], "big")
        body = message[at + LENGTH_AND_LSN : at + 4 + length]
        assert len(body) == length - 8
        assert not isinstance(event, (wf.Corrupt, wf.Unknown)) or event.raw == body
        at += 4 + length
    rest = message[at + 4 :]
    assert [event.raw if isinstance(event, wf.Corrupt) else None for event in left] == ([rest] if rest else [])


def _record(message: bytes, at: int, event: wf.Event) -> int:
    """Check one framed record, or a bare heartbeat; gives the byte after it."""
    if isinstance(event, wf.Heartbeat) and event.lsn is None:
        assert at == 0, "a bare heartbeat inside a message"
        assert message[:25] == next(iter(wf.encode([event], FORMAT)))[:25]
        return 25
    length = int.from_bytes(message[at : at + 4], "big")
    assert event.lsn == int.from_bytes(message[at + 4 : at + LENGTH_AND_LSN], "big")
    body = message[at + LENGTH_AND_LSN : at + 4 + length]
    assert len(body) == length - 8, f"the record at byte {at} is longer than the message"
    if isinstance(event, (wf.Corrupt, wf.Unknown)):
        assert event.raw == body, f"the raw of the record at byte {at}"
    else:
        _check_body(body, event)
    return at + 4 + length


def _separator(message: bytes, at: int) -> tuple[int, bool]:
    """(byte after the separator, whether the message should end there). A wrong one belongs to the next row."""
    if message[at : at + 1] == b"F":
        return at + 1, True
    if message[at : at + 1] != b"P" or message[:1] == b"h":
        return at, False
    return (at + 5, True) if message[at + 1 : at + 5] == bytes(4) else (at + 1, False)


def _check_body(body: bytes, event: wf.Event) -> None:
    """The body has as many bytes as the event; column names may be quoted on the wire or not."""
    (message,) = wf.encode([event], FORMAT, options=EVERYTHING[FORMAT])
    written = message[LENGTH_AND_LSN:-1]
    assert written[0] == body[0]
    if body == written:
        return
    names = [name for side in (getattr(event, "new", None), getattr(event, "old", None)) if side for name in side.names]
    forms = [(len(name.encode()), len(quote_identifier(name).encode()), _quoted_bytes(name)) for name in names]
    as_written = sum(canonical for _, canonical, _ in forms)
    shortest = sum(
        quoted if name.startswith('"') else bare for name, (bare, _, quoted) in zip(names, forms, strict=True)
    )
    longest = sum(quoted for *_, quoted in forms)
    assert len(written) - as_written + shortest <= len(body) <= len(written) - as_written + longest


def _quoted_bytes(name: str) -> int:
    return len(name.replace('"', '""').encode()) + 2
