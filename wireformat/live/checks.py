"""What must be right before a stream starts, each with what to do about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..errors import ServerError, counted
from ..lsn import lsn_text
from ..options import ReadOptions
from ..options.table_names import MOST_NAMES, suggestion, written
from ..stream.capture_position import CapturePosition
from .connection import Connection
from .plugins import CSN_ORDER, READ
from .slots import Slot, System, described, find_slot, retained_bytes


class Finding(NamedTuple):
    """The result of a check.

    level    ok, note, warning, or error: then no stream starts
    check    what was checked
    text     what was found
    advice   what to do about it; empty if nothing
    passes   whether it may pass by itself
    """

    level: str
    check: str
    text: str
    advice: str = ""
    passes: bool = False

    @property
    def sentence(self) -> str:
        """All but the level."""
        return f"{self.check}: {self.text}" + (f"; {self.advice}" if self.advice else "")

    def __str__(self) -> str:
        return f"{self.level:7} {self.sentence}"


class Keeper(NamedTuple):
    """What keeps the position of a stream, in the words of messages.

    noun       what it is
    anew       how to begin another one
    slot       how to name another slot
    new_slot   how a slot is created
    lost       how to go on after a slot was lost
    """

    noun: str
    anew: str
    slot: str
    new_slot: str
    lost: str


LAKE = Keeper(
    "lake",
    "write to another folder, with a snapshot",
    "pass --slot",
    "pass --create-slot to create it; it sends only later changes; pass --snapshot to copy the existing rows",
    "begin another lake, with a new slot and a snapshot",
)
CHECKPOINT = Keeper(
    "checkpoint",
    "start with a new checkpoint, and load the existing rows first",
    "set the option slot to",
    "create it with wireformat.live.create_slot; it sends only later changes",
    "create a new slot, start with a new checkpoint, and load the existing rows first",
)


class Wanted(NamedTuple):
    """What a stream needs.

    position      where it goes on; None at its beginning
    creates_slot  a slot that is not there is created
    keeper        what keeps the position
    reading       has the patterns of the tables that are wanted
    copied        tables whose rows have been copied, if the others are to be copied; None if none are
    named         patterns of tables, as ReadOptions has them, by the option that has them
    """

    slot: str
    publications: Sequence[str]
    position: CapturePosition | None = None
    creates_slot: bool = False
    keeper: Keeper = LAKE
    reading: ReadOptions = ReadOptions()
    copied: Collection[tuple[str, str]] | None = None
    named: Mapping[str, Collection[tuple[str | None, str | None]]] = MappingProxyType({})


def all_findings(connection: Connection, wanted: Wanted, system: System, slot: Slot | None) -> list[Finding]:
    """Returns what all checks find. Raises ServerError if the connection is lost."""
    found = [
        *_server(connection, system),
        *_slot(wanted, slot, system),
        *position_findings(wanted.position, wanted, system, slot),
    ]
    if wanted.publications and (slot is None or slot.plugin == "pgoutput"):
        found += _publications(connection, wanted)
    return found


def raise_errors(found: Iterable[Finding]) -> None:
    """Raises ServerError with all findings that keep a stream from starting."""
    errors = [one for one in found if one.level == "error"]
    if errors:
        raise ServerError(" | ".join(one.sentence for one in errors), is_temporary=all(one.passes for one in errors))


def check_start(connection: Connection, name: str, lsn: int) -> None:
    """Raises ServerError if a slot whose stream has just been started begins after an LSN.

    connection   another one than that of the stream

    Until the stream is started, somebody else may advance the slot or make it again, and the server then starts later
    without a word. Afterwards only the reader moves it.
    """
    slot = find_slot(connection, name)
    if slot is None or (slot.confirmed is not None and slot.confirmed > lsn):
        raise ServerError(
            f"position: another reader advanced slot {name} while the stream started: try again; the check will then "
            "report what is missing",
            is_temporary=True,
        )


def position_findings(
    position: CapturePosition | None, wanted: Wanted, system: System, slot: Slot | None
) -> Iterator[Finding]:
    """Yields whether the server can go on at a position without a gap."""
    if position is None:
        return
    noun, anew = wanted.keeper.noun, wanted.keeper.anew
    gap = f"the {noun} lacks what happened between: {anew}"
    there = position.slot
    if there is None:
        yield Finding("error", "position", f"the {noun} was not written from a slot", anew)
        return
    if there.system != system.system:
        yield Finding(
            "error",
            "position",
            f"the {noun} was read from system {there.system}, this server is system {system.system}",
            f"connect to the server that it was read from, or {anew}",
        )
        return
    if there.slot != wanted.slot:
        yield Finding(
            "error",
            "position",
            f"the {noun} was read from slot {there.slot}, not from {wanted.slot}",
            f"{wanted.keeper.slot} {there.slot}, or {anew}",
        )
        return
    left = system.end_of(there.timeline)
    if slot is None:
        yield Finding(
            "error", "position", f"the {noun} ends at {lsn_text(there.lsn)}, but its slot no longer exists", gap
        )
    elif slot.confirmed is not None and there.lsn < slot.confirmed:
        yield Finding(
            "error",
            "position",
            f"the {noun} ends at {lsn_text(there.lsn)}, the slot begins at {lsn_text(slot.confirmed)}: it was advanced "
            "by somebody else, or dropped and created again",
            gap,
        )
    elif is_behind(position, system):
        yield Finding(
            "error",
            "position",
            f"the {noun} ends at {lsn_text(there.lsn)}, the standby's log ends at {lsn_text(system.flushed)}",
            "wait until it has received and replayed the primary's log; if it stays behind, connect to the server that "
            "the stream was read from",
            passes=True,
        )
    elif there.lsn > system.flushed:
        yield Finding(
            "error",
            "position",
            f"the {noun} ends at {lsn_text(there.lsn)}, the server's log ends at {lsn_text(system.flushed)}: it was "
            "restored from a backup, or was a standby that lacked the end",
            f"connect to the server that has the whole log, or {anew}",
        )
    elif left is not None and there.lsn > left:
        yield Finding(
            "error",
            "position",
            f"the {noun} ends at {lsn_text(there.lsn)} of timeline {there.timeline}, which the server's log has left "
            f"at {lsn_text(left)}, for timeline {system.timeline}: a standby was promoted that lacked the end, and the "
            f"{noun} has changes that were lost there",
            f"connect to the server that has the whole log, or {anew}",
        )
    else:
        yield Finding("ok", "position", f"continues at {lsn_text(there.lsn)}")


def is_behind(position: CapturePosition, system: System) -> bool:
    """Whether a server is a standby that has not yet received or replayed what comes before a position."""
    there = position.slot
    return there is not None and there.system == system.system and system.is_standby and there.lsn > system.flushed


def _server(connection: Connection, system: System) -> Iterator[Finding]:
    level = _setting(connection, "wal_level")
    if level == "logical":
        yield Finding("ok", "wal_level", "logical")
    else:
        yield Finding(
            "error",
            "wal_level",
            f"expected logical, got {level}",
            "ALTER SYSTEM SET wal_level = logical, and restart the server",
        )
    encoding = _setting(connection, "server_encoding")
    if encoding == "SQL_ASCII":
        yield Finding(
            "warning",
            "encoding",
            "the database is SQL_ASCII: the server does not know the encoding of its texts, and converts none",
            "pass --encoding with the encoding that its clients write, or --encoding-errors replace",
        )
    else:
        yield Finding("ok", "encoding", f"{encoding}, sent as UTF8")
    if system.is_standby and 10 <= connection.version < 16:
        yield Finding("error", "server", "a standby, and only PostgreSQL 16 and newer decode there", "use the primary")
    elif system.is_standby:
        yield Finding("note", "server", "a standby: its slots are lost if the primary's wal_level changes")


def _slot(wanted: Wanted, slot: Slot | None, system: System) -> Iterator[Finding]:
    if slot is None:
        if wanted.creates_slot:
            yield Finding("note", "slot", f"{wanted.slot} does not exist, and will be created")
        else:
            yield Finding(
                "error",
                "slot",
                f"{wanted.slot} does not exist",
                "" if wanted.position is not None else wanted.keeper.new_slot,
            )
        return
    if slot.facts.get("slot_type") == "physical":
        yield Finding("error", "slot", f"{slot.name} is a physical slot", "name a logical one")
        return
    if slot.plugin not in READ:
        yield Finding("error", "plugin", f"the plugin {slot.plugin} is not supported", f"use one of {', '.join(READ)}")
    if slot.is_in_csn_order:
        yield Finding(
            "error",
            "slot",
            f"{slot.name} is in CSN order: {CSN_ORDER}",
            "create one in LSN order on a data node: pg_create_logical_replication_slot(name, plugin, 0)",
        )
    if slot.facts.get("two_phase") == "t":
        yield Finding(
            "error",
            "slot",
            f"{slot.name} was created with two_phase: the server sends a prepared transaction before it is committed, "
            "and not again when it is",
            "create a slot without two_phase",
        )
    if slot.plugin == "pgoutput" and not wanted.publications:
        yield Finding("error", "publication", "pgoutput needs one", "pass --publication")
    if slot.database != system.database:
        yield Finding(
            "error",
            "database",
            f"{slot.name} is a slot of database {slot.database}, this connection is to {system.database}",
            f"connect to dbname={slot.database}",
        )
    lost = slot.is_lost
    if lost is not None:
        yield Finding(
            "error",
            "slot",
            f"{slot.name} is lost: {lost}",
            "the server has removed the log that it needs: drop it with `wireformat check --drop-slot`, and "
            f"{wanted.keeper.lost}",
        )
    elif slot.is_active:
        yield Finding(
            "error",
            "slot",
            f"{slot.name} is active: process {slot.facts.get('active_pid')} of the server sends it to another reader",
            "stop the other reader; after a crash the server notices within wal_sender_timeout",
            passes=True,
        )
    else:
        yield Finding("ok", "slot", described(slot))
    yield from _retention(slot, system)


def _retention(slot: Slot, system: System) -> Iterator[Finding]:
    kept = retained_bytes(system, slot)
    if kept is not None:
        yield Finding("ok", "retained", f"the server keeps {kept / 1e6:.1f} MB of its log for the slot")
    if slot.facts.get("wal_status") in ("unreserved", "extended"):
        status = slot.facts["wal_status"]
        yield Finding(
            "warning" if status == "unreserved" else "note",
            "retained",
            f"wal_status is {status}: the slot keeps more log than max_wal_size",
            "read it soon: it may be lost at the next checkpoint" if status == "unreserved" else "",
        )
    if slot.facts.get("failover") == "f":
        yield Finding(
            "note",
            "failover",
            "the slot is not copied to standbys: after a failover it is gone",
            "create it with failover if there are standbys",
        )


def _publications(connection: Connection, wanted: Wanted) -> Iterator[Finding]:
    keep = connection.query("select setting from pg_catalog.pg_settings where name = 'max_slot_wal_keep_size'")
    if keep and keep[0]["setting"] == "-1":
        yield Finding(
            "note",
            "max_slot_wal_keep_size",
            "unlimited: a slot that nobody reads fills the server's disk",
            "set it to what the disk can hold; a slot that falls behind further is then lost instead",
        )
    elif keep:
        yield Finding("ok", "max_slot_wal_keep_size", f"{keep[0]['setting']} MB: a slot further behind is lost")
    idle = connection.query(
        "select setting, unit from pg_catalog.pg_settings "
        "where name = 'idle_replication_slot_timeout' and setting <> '0'"
    )
    if idle:
        yield Finding(
            "note",
            "idle_replication_slot_timeout",
            f"{idle[0]['setting']} {idle[0]['unit']}: a slot that is not read for so long is lost",
            "set it to more than the longest time for which the stream may be stopped",
        )
    for name in wanted.publications:
        rows = connection.query(f"select * from pg_catalog.pg_publication where pubname = {connection.literal(name)}")
        if not rows:
            yield Finding(
                "error",
                "publication",
                f"{name} does not exist",
                f"CREATE PUBLICATION {connection.identifier(name)} FOR TABLE …",
            )
            continue
        yield from _tables(connection, name, rows[0], wanted)
    yield from _named(connection, wanted)


def _named(connection: Connection, wanted: Wanted) -> Iterator[Finding]:
    """Yields the tables that options name and no publication has. They may come later: this is no error."""
    if not any(wanted.named.values()):
        return
    names = ", ".join(map(connection.literal, wanted.publications))
    rows = connection.query(
        f"select schemaname, tablename from pg_catalog.pg_publication_tables where pubname in ({names})"
    )
    tables = [(row["schemaname"] or "", row["tablename"] or "") for row in rows]
    there = [written(table) for table in tables]
    for option, patterns in wanted.named.items():
        for pattern in patterns:
            if not any(map(ReadOptions(tables=(pattern,)).keeps_table, tables)):
                yield Finding(
                    "warning",
                    option,
                    f"no table of the publication is {written(pattern)}{suggestion(written(pattern), there)}",
                    "correct the name, or add the table to the publication",
                )


_TABLES = """
select t.schemaname, t.tablename, c.relreplident,
    exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisprimary) as has_key,
    pg_catalog.has_schema_privilege(n.oid, 'USAGE') and not exists (select from pg_catalog.pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and {published}
        and not pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')) as may_select,
    pg_catalog.row_security_active(c.oid) as lacks_rows
from pg_catalog.pg_publication_tables t
join pg_catalog.pg_namespace n on n.nspname = t.schemaname
join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = t.tablename
where t.pubname = {publication} order by 1, 2
"""


def _tables(connection: Connection, name: str, publication: dict[str, str | None], wanted: Wanted) -> Iterator[Finding]:
    version = connection.version
    published = "a.attname = any (t.attnames)" if version >= 15 else "a.attgenerated = ''" if version >= 12 else "true"
    tables = connection.query(_TABLES.format(published=published, publication=connection.literal(name)))
    if tables:
        yield Finding("ok", "publication", f"{name} has {counted(len(tables), 'table')}")
    else:
        yield Finding("warning", "publication", f"{name} has no tables", "ALTER PUBLICATION … ADD TABLE …")
    yield from _privileges(tables, wanted)
    if "t" not in (publication.get("pubupdate"), publication.get("pubdelete")):
        return
    for row in tables:
        label = f"{row['schemaname']}.{row['tablename']}"
        quoted = ".".join(connection.identifier(row[part] or "") for part in ("schemaname", "tablename"))
        identity = row["relreplident"]
        if identity == "n" or (identity == "d" and row["has_key"] == "f"):
            yield Finding(
                "warning",
                "replica identity",
                f"{label} has none: its UPDATE and DELETE fail in the database while it is published",
                f"add a primary key, or ALTER TABLE {quoted} REPLICA IDENTITY FULL",
            )


def _privileges(tables: Sequence[dict[str, str | None]], wanted: Wanted) -> Iterator[Finding]:
    """Yields whether the rows of tables can be copied: else a slot that was created for it would keep the log."""
    lacks: dict[str, list[str]] = {"select": [], "rows": []}
    for row in tables:
        table = (row["schemaname"] or "", row["tablename"] or "")
        if wanted.reading.keeps_table(table) and table not in (wanted.copied or ()):
            if row["may_select"] == "f":
                lacks["select"].append(written(table))
            elif row["lacks_rows"] == "t":
                lacks["rows"].append(written(table))
    level, needs = ("note", "only a snapshot needs it") if wanted.copied is None else ("error", "the snapshot needs it")
    if lacks["select"]:
        yield Finding(
            level,
            "privileges",
            f"the role may not read {_listed(lacks['select'])}: {needs}",
            "GRANT USAGE on the schema and SELECT on the tables to it",
        )
    if lacks["rows"]:
        yield Finding(
            level,
            "privileges",
            f"row-level security may hide rows of {_listed(lacks['rows'])} from the role: {needs}",
            "ALTER ROLE … BYPASSRLS",
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _setting(connection: Connection, name: str) -> str | None:
    return next(iter(connection.query(f"SHOW {name}")[0].values()))
