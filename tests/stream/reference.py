"""Transactions in plain Python: what is delivered and what is open, said once more and without any cleverness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import wireformat as wf

Entry = tuple[int, wf.Event]
CHANGES = (wf.Insert, wf.Update, wf.Delete, wf.Truncate, wf.Ddl, wf.StreamChange)


class OutOfOrder(Exception):
    """The stream is none that a server sends, or it begins too late."""


def reference(
    events: list[wf.Event], two_phase: str = "commit", drop_resent: bool = True
) -> tuple[list[tuple[Any, ...]], list[wf.Event]]:
    """(sequence, xid, csn, commit_lsn, time, username, origin, kind, table or prefix) of each change; open events."""
    delivered: list[tuple[Any, ...]] = []
    current: list[Entry] | None = None  # the plain transaction or the block that is open
    block: int | None = None
    streamed: dict[int, list[Entry]] = {}
    prepared: dict[str, list[Entry]] = {}
    done: dict[str, int | None] = {}  # delivered at their prepare
    ended: list[tuple[int | None, int | None]] = []
    number = 0

    def came_before(lsn: int | None, csn: int | None) -> bool:
        lsns, csns = ([one[n] for one in ended if one[n] is not None] for n in (0, 1))
        return lsn is not None and any(lsn <= one for one in lsns) and (csn is None or any(csn <= one for one in csns))

    def ends_earlier(gid: str | None, lsn: int | None) -> bool:
        """Whether an end is that of an earlier transaction with the same gid."""
        prepared_at = done.get(gid)
        return lsn is not None and prepared_at is not None and lsn < prepared_at

    def commit(entries: list[Entry], end: wf.Event, lsn: int | None, time: str | None) -> None:
        records = [event for _, event in entries if not is_change(event)] + [end]
        said = {
            name: next((v for e in reversed(records) if (v := getattr(e, name, None)) is not None), None)
            for name in ("xid", "csn", "username", "origin")
        }
        time = time if time is not None else getattr(records[0], "commit_time", None)
        was_there = drop_resent and came_before(lsn, said["csn"])
        nonlocal number
        number += 1
        ended.append((lsn, said["csn"]))
        place = next(n for n in (lsn, said["csn"], number) if n is not None)
        undone = {e.subxid for e in records if isinstance(e, wf.StreamAbort)}
        origin = None if said["origin"] is None else str(said["origin"])
        facts = (said["xid"], said["csn"], lsn, time, said["username"], origin)
        rows = [(e, name) for _, e in entries if is_change(e) for name in names(e)]
        for ordinal, (e, name) in enumerate(rows):
            if not was_there and getattr(e, "xid", None) not in undone - {None}:
                delivered.append(((place, ordinal), *facts, e.kind, name))

    for entry in enumerate(events):
        event = entry[1]
        kind = event.kind
        lsn = event.lsn if getattr(event, "commit_lsn", None) is None else event.commit_lsn
        is_part = kind == "STREAM_ABORT" and event.subxid not in (None, event.xid)
        is_alone = kind == "PREPARE" and (current is None or block is not None or is_behind(event, current[0][1]))
        opens = is_part or is_alone or kind in ("BEGIN", "STREAM_START", "COMMIT_PREPARED", "ROLLBACK_PREPARED")
        if opens and current is not None:
            before, now = (getattr(e, "commit_lsn", None) for e in (current[0][1], event))
            if before is not None and now is not None and now > before:
                raise OutOfOrder("an end was lost")
            csn, now_csn = (getattr(e, "csn", None) for e in (current[0][1], event))
            has_lsns, known = None not in (before, now), [one for _, one in ended if one is not None]
            if not has_lsns and None not in (csn, now_csn) and all(now_csn > one for one in [csn, *known]):
                raise OutOfOrder("an end was lost")
            current = block = None
            streamed.clear()
        if is_change(event):
            if current is not None:
                current.append(entry)
            elif kind == "MESSAGE" and event.lsn is None:
                commit([entry], wf.Heartbeat(wal_end=0, time=0), None, None)
            else:
                raise OutOfOrder("a change outside")
        elif kind == "BEGIN":
            streamed.pop(event.xid, None)
            current = [entry]
        elif kind == "STREAM_START":
            if event.first_segment:
                streamed.pop(event.xid, None)
            if event.first_segment is False and event.xid not in streamed:
                raise OutOfOrder("the first block is missing")
            block = event.xid
            current = streamed.setdefault(block, [])
            current.append(entry)
        elif kind == "ORIGIN":
            if current is None:
                raise OutOfOrder("an origin outside")
            current.append(entry)
        elif kind == "STREAM_STOP":
            if block is None or event.xid not in (None, block):
                raise OutOfOrder("no block to stop")
            current.append(entry)
            current = block = None
        elif is_alone:
            entries = []
        elif kind in ("COMMIT", "PREPARE"):
            if current is None and came_before(lsn, event.csn):
                continue
            if current is None or block is not None:
                raise OutOfOrder("an end without a beginning")
            for name in ("xid", "gid", "commit_lsn"):
                both = {getattr(e, name, None) for e in (current[0][1], event)} - {None}
                if len(both) > 1:
                    raise OutOfOrder("an end of another")
            entries, current = current, None
            if kind == "COMMIT" and entries[0][1].gid is not None:
                raise OutOfOrder("a commit of what is to be prepared")
            if kind == "COMMIT":
                commit(entries, event, lsn, event.commit_time)
        elif kind in ("STREAM_COMMIT", "STREAM_PREPARE", "STREAM_ABORT"):
            if current is not None:
                raise OutOfOrder("an end in what is open")
            if event.xid not in streamed:
                if kind == "STREAM_ABORT" or came_before(lsn, None):
                    continue
                raise OutOfOrder("an end without a beginning")
            if is_part:
                streamed[event.xid].append(entry)
                continue
            entries = streamed.pop(event.xid)
            if kind == "STREAM_COMMIT":
                commit(entries, event, lsn, event.commit_time)
        elif kind == "COMMIT_PREPARED":
            if not ends_earlier(event.gid, lsn):
                done.pop(event.gid, None)
            if event.gid in prepared:
                commit(prepared.pop(event.gid), event, lsn, event.commit_time)
            elif two_phase == "prepare":
                ended.append((event.commit_lsn, None))
        elif kind == "ROLLBACK_PREPARED":
            if not ends_earlier(event.gid, lsn):
                done.pop(event.gid, None)
            prepared.pop(event.gid, None)
        if kind in ("PREPARE", "STREAM_PREPARE"):
            prepared.pop(event.gid, None)
            if two_phase == "prepare" and event.lsn is not None and done.get(event.gid) == event.lsn:
                continue
            if two_phase == "prepare" and not (drop_resent and came_before(event.lsn, None)):
                done[event.gid] = event.lsn
                commit(entries, event, event.lsn, event.prepare_time)
            else:
                prepared[event.gid] = [*entries, entry]
    held = [
        *(current or [] if block is None else []),
        *(e for found in (streamed, prepared) for es in found.values() for e in es),
    ]
    return delivered, [event for _, event in sorted(held, key=lambda one: one[0])]


def is_behind(prepare: wf.Event, begin: wf.Event) -> bool:
    """Whether a PREPARE is of another transaction than the BEGIN before it, and of an earlier one."""
    pairs = ((begin.xid, prepare.xid), (begin.gid, prepare.gid))
    place = begin.lsn if begin.commit_lsn is None else begin.commit_lsn
    is_other = any(None not in pair and pair[0] != pair[1] for pair in pairs)
    return is_other and None not in (place, prepare.lsn) and prepare.lsn < place


def is_change(event: wf.Event) -> bool:
    return isinstance(event, CHANGES) or (isinstance(event, wf.Message) and event.transactional)


def names(event: wf.Event) -> Iterator[str]:
    """What tells a change apart; one for each table of a TRUNCATE."""
    if isinstance(event, wf.Truncate):
        yield from (name for _, name in event.tables)
    else:
        yield getattr(event, "table_name", None) or getattr(event, "prefix", None) or getattr(event, "content", "")
