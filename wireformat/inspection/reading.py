"""Reads records as their format does, and makes trees of what the format notes meanwhile.

It also finds records in bytes of which the beginning, or something in between, is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import groupby, islice
from typing import Any, NamedTuple

from ..errors import DecodeError, OptionError
from ..events import Corrupt, Event, Unknown
from ..formats.base import Format
from ..formats.guess import Guess
from ..formats.pgoutput.messages import RECORDS
from ..formats.pgoutput.relations import ASKS, NOTHING, role_of
from ..formats.registry import all_rows, find_format, find_row
from ..formats.row import PATTERNS
from ..framing.copy_data import ENVELOPE
from ..framing.frames import Frame, Part, layout
from ..options import ReadOptions
from ..tracing import Trace, traced
from .nodes import Node

KIND_RULE = "a byte that names the kind of record"
UNKNOWN_RULE = "a record of a kind that the format does not describe"
GROUP_RULE = "the fields below"
UNNAMED_RULE = "bytes that no rule names"
NO_RECORDS_RULE = "the end of a batch without records"

_ENVELOPE = bytes([ENVELOPE])

STREAMED_XID = 0
"""The xid of a streamed block whose beginning was not given."""


class Slice(NamedTuple):
    """The bytes of a message that belong to one record: its frame, and the framing around it.

    frame  None for the rest of a message whose framing is broken
    """

    frame: Frame | None
    start: int
    stop: int
    error: DecodeError | None = None


class RecordReader:
    """Reads the records of a stream's messages, in order.

    Where messages depend on earlier ones, it knows what the messages said that it has read. A record that can only be
    read inside a streamed block is read as one of a block, also where its beginning was not among them.
    """

    def __init__(self, format: Format, options: ReadOptions) -> None:
        self.format = format.fresh()
        self.options = options
        framing = import_module(find_row(format.name).framing)
        self.head: tuple[Part, ...] = getattr(framing, "HEAD", ())
        self.tail: tuple[Part, ...] = getattr(framing, "TAIL", ())
        kinds = RECORDS[options.dialect] if self.format.relations is not None else {}
        self._lessons = frozenset(
            bytes([tag]) for tag, (kind, _) in kinds.items() if role_of(kind) not in (ASKS, NOTHING)
        )

    def slices(self, message: bytes) -> Iterator[Slice]:
        """Yields the records of a message; the last one may be what broken framing leaves. Raises nothing."""
        head, tail = layout(self.head).size, layout(self.tail).size
        start = stop = 0
        frame: Frame | None = None
        error: DecodeError | None = None
        frames = self.format.frames(message)
        while True:
            try:
                following = next(frames, None)
            except DecodeError as found:
                error, following = found, None
            if following is None:
                break
            begin = max(stop, following.start - head)
            if frame is not None:
                yield Slice(frame, start, begin)
                start = begin
            frame, stop = following, following.stop
        if error is None:
            yield Slice(frame, start, len(message))
            return
        broken = error.message_offset
        end = min(max(stop, len(message) if broken is None else broken), stop + tail, len(message))
        if frame is not None:
            yield Slice(frame, start, end)
            start = end
        yield Slice(None, start, len(message), error)

    def unframed(self, data: bytes, error: DecodeError | None = None) -> Iterator[Slice]:
        """Yields bytes of a file in which no message can be found; `error` says why, if the framing is broken here."""
        yield Slice(None, 0, len(data), error or DecodeError("a message", "bytes after broken framing"))

    def learn(self, message: bytes) -> None:
        """Reads an earlier message if later ones may depend on it. A message of pgoutput is one record."""
        inside = layout(self.head).size if message[:1] == _ENVELOPE else 0
        if message[inside : inside + 1] not in self._lessons:
            return
        for piece in self.slices(message):
            if piece.frame is not None:
                self._read(message, piece.frame)

    def event(self, message: bytes, frame: Frame) -> tuple[Event, DecodeError | None, Trace]:
        """Returns the event of a record, which is CORRUPT if it cannot be read, its error, and what was noted."""
        read = self._read(message, frame)
        relations = self.format.relations
        if read[1] is None or relations is None or relations.block is not None or _is_whole(read[2], frame):
            return read
        relations.block = STREAMED_XID
        inside = self._read(message, frame)
        relations.block = None
        return inside if inside[1] is None or _is_whole(inside[2], frame) else read

    def _read(self, message: bytes, frame: Frame) -> tuple[Event, DecodeError | None, Trace]:
        with traced() as trace:
            try:
                return self.format.read(message, frame, self.options), None, trace
            except DecodeError as error:
                error.add(format=self.format.name, record=frame.record, record_lsn=frame.lsn)
                raw = message[frame.start : frame.stop]
                return Corrupt(lsn=frame.lsn, raw=raw, error=str(error)), error, trace

    def outline(self, message: bytes, piece: Slice) -> tuple[Event, DecodeError | None]:
        """Returns the value and the error of a record's tree, in a third of the time."""
        if piece.frame is None:
            return _rest(message, piece), piece.error
        try:
            return self.format.read(message, piece.frame, self.options), None
        except DecodeError:
            return self.event(message, piece.frame)[:2]

    def node(self, message: bytes, piece: Slice, index: int) -> Node:
        """Returns the tree of a record."""
        path = f"records[{index}]"
        if piece.frame is None:
            event, error = _rest(message, piece), piece.error
            if error is None:
                children = [*_framing(self.tail, message, piece.start, piece.stop)]
                return Node(path, path, event, NO_RECORDS_RULE, piece.start, piece.stop, children)
            bad = _Part(*_unread(piece.start, piece.stop, error), error=error)
            return Node(path, path, event, "the rest of the message", piece.start, piece.stop, _tree([bad], {}), error)
        event, fault, trace = self.event(message, piece.frame)
        children = [
            *_framing(self.head, message, piece.start, piece.frame.start),
            *_tree(_parts(trace, piece.frame, event, fault, message), trace.wholes),
            *_framing(self.tail, message, piece.frame.stop, piece.stop),
        ]
        rule = f"a record of {self.format.name}"
        return Node(path, path, event, rule, piece.start, piece.stop, children, fault)


def _rest(message: bytes, piece: Slice) -> Event:
    """Returns what the rest of a message is in which there is no record, or none can be found."""
    raw = message[piece.start : piece.stop]
    return Unknown(raw=raw) if piece.error is None else Corrupt(raw=raw, error=str(piece.error))


class _Part(NamedTuple):
    """A note, and the error in its bytes."""

    start: int
    stop: int
    path: str
    rule: str
    value: Any
    error: DecodeError | None = None

    @property
    def steps(self) -> list[str]:
        """The names from the record down to it."""
        return self.path.split(".") if self.path else []


def _is_whole(trace: Trace, frame: Frame) -> bool:
    """Whether all bytes of a record were read, whatever was wrong with them."""
    return bool(trace.notes) and trace.notes[-1].stop >= frame.stop


def _framing(parts: tuple[Part, ...], message: bytes, start: int, stop: int) -> Iterator[Node]:
    """The numbers of the framing in message[start:stop], and what no rule names."""
    for part in parts:
        struct = layout((part,))
        if start + struct.size > stop:
            break
        (value,) = struct.unpack_from(message, start)
        value = value.decode("latin-1") if isinstance(value, bytes) else value
        yield Node(part.name, part.name, value, part.rule, start, start + struct.size)
        start += struct.size
    if start < stop:
        yield Node("rest", "rest", message[start:stop], UNNAMED_RULE, start, stop)


def _parts(trace: Trace, frame: Frame, event: Event, error: DecodeError | None, message: bytes) -> list[_Part]:
    """The smallest parts of a record without gaps: what was noted, and what was not."""
    if isinstance(event, Unknown) and not trace.notes:
        raw = message[frame.start : frame.stop]
        return [_Part(frame.start, frame.stop, "raw", UNKNOWN_RULE, raw)] if raw else []
    notes = list(trace.notes)
    is_whole = _is_whole(trace, frame)
    wrong = None if error is None else (error.message_offset or 0)
    if wrong is not None and not is_whole:
        notes = [note for note in notes if note.start < max(wrong, frame.start)]
    found: list[_Part] = []
    at = frame.start
    for note in notes:
        found += _gap(at, note.start, frame, event, message)
        found.append(_Part(*note))
        at = note.stop
    if at < frame.stop and error is not None:
        if at == frame.start and (wrong or 0) > at:
            found += _gap(at, at + 1, frame, event, message)
            at += 1
        if at < frame.stop:
            found.append(_Part(*_unread(at, frame.stop, error), error=error))
    else:
        found += _gap(at, frame.stop, frame, event, message)
        if error is not None:
            found = [part._replace(error=error) if part.start <= (wrong or 0) < part.stop else part for part in found]
    return found


def _gap(start: int, stop: int, frame: Frame, event: Event, message: bytes) -> list[_Part]:
    """Bytes that the declaration of a record did not read: the byte before it, or others."""
    if start >= stop:
        return []
    if start == frame.start and stop == start + 1:
        kind = repr(chr(message[start])) if isinstance(event, Corrupt) else event.kind
        return [_Part(start, stop, "kind", KIND_RULE, kind)]
    return [_Part(start, stop, "rest", UNNAMED_RULE, message[start:stop])]


def _unread(start: int, stop: int, error: DecodeError) -> tuple[int, int, str, str, None]:
    return start, stop, error.path or "rest", f"expected {error.expected}, got {error.got}", None


def _tree(parts: list[_Part], wholes: Mapping[str, tuple[Any, str]], depth: int = 0) -> list[Node]:
    """Nodes for parts whose paths are the same in their first steps."""
    nodes: list[Node] = []
    for step, group in groupby(parts, key=lambda part: part.steps[depth] if len(part.steps) > depth else None):
        run = list(group)
        if step is None:
            nodes += [_leaf(part, part.path if part.value is None else f"{part.path}.value") for part in run]
        elif len(run) == 1 and len(run[0].steps) == depth + 1:
            nodes.append(_leaf(run[0], run[0].path))
        else:
            path = ".".join(run[0].steps[: depth + 1])
            value, rule = wholes.get(path, (None, GROUP_RULE))
            children = _tree(run, wholes, depth + 1)
            nodes.append(Node(path, step, value, rule, run[0].start, run[-1].stop, children))
    return nodes


def _leaf(part: _Part, path: str) -> Node:
    name = path.rpartition(".")[2] or "word"
    if part.value is None and part.rule[:1] in ("'", '"'):
        name = "word"
    return Node(path, name, part.value, part.rule, part.start, part.stop, [], part.error)


GUESSED_BYTES, GUESSED_RECORDS = 4 << 20, 20
"""How many bytes are searched to guess their format, and how many records of each format are counted."""

BATCHED = "batched "
"""How the names of those patterns begin that know a record by its framing."""


def find_records(reader: RecordReader, data: bytes) -> Iterator[tuple[Slice, Event]]:
    """Yields the records that can be read somewhere in the bytes, in their order, and what they say; none overlap.

    A record is found where length, LSN and the first bytes of its body look like the format's, and all of it can be
    read. Raises OptionError for a format whose records have no length.
    """
    names = find_row(reader.format.name).signatures
    patterns = [PATTERNS[name] for name in names if isinstance(name, str) and name.startswith(BATCHED)]
    if not patterns:
        raise OptionError(
            f"option scan: records of {reader.format.name} have no length, so none can be found in the middle of "
            "bytes; a message is a record"
        )
    head = layout(reader.head)
    begins = re.compile(b"(?=" + b"|".join(patterns) + b")", re.DOTALL)
    at = 0
    while match := begins.search(data, at):
        start = match.start()
        length, lsn = head.unpack_from(data, start)
        body, stop = start + head.size, start + 4 + length
        at = start + 1
        if not body < stop <= len(data):
            continue
        frame = Frame(0, body, stop, lsn)
        try:
            event = reader.format.read(data, frame, reader.options)
        except DecodeError:
            continue
        if not isinstance(event, Unknown):
            at = stop
            yield Slice(frame, start, stop), event


def guess_scanned(data: bytes, options: ReadOptions) -> Guess:
    """The format of which the most records are found in the bytes, and why."""
    found = {}
    for name in all_rows():
        records = find_records(RecordReader(find_format(name), options), data[:GUESSED_BYTES])
        with suppress(OptionError):  # its records have no length
            found[name] = sum(1 for _ in islice(records, GUESSED_RECORDS))
    most = max(found.values())
    if not most:
        return Guess(None, (), "no record of a known format is found", 0)
    names = tuple(sorted(name for name, count in found.items() if count == most))
    reason = f"records of {' or '.join(names)} are found in the bytes"
    return Guess(names[0] if len(names) == 1 else None, names, reason, 0)
