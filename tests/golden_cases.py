"""The reference captures of tests/golden: every case in the folder, its messages, and the events and rows in them.

The truth is turned into events and rows here, by its own code, so that a mistake of the package cannot hide in it.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import wireformat as wf

from .engines import Answer, ask

FOLDER = Path(__file__).parent / "golden"
TYPES = Path(__file__).parent.parent / "tools" / "types.csv"

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_UNITS_BY_SIZE = ((10**11, 10**6), (10**14, 10**3), (1 << 64, 1))
_TRANSACTIONS = {"BEGIN": wf.Begin, "COMMIT": wf.Commit, "ABORT": wf.Abort, "PREPARE": wf.Prepare}
_ROW_CHANGES = {"INSERT": wf.Insert, "UPDATE": wf.Update, "DELETE": wf.Delete}
_FORMATS = {
    "b": "gaussdb-binary",
    "j": "gaussdb-json",
    "t": "gaussdb-text",
    "mppdb": "mppdb-json",
    "testdec": "opengauss-test-decoding",
    "sql": "sql-decoding",
    "handmade": "gaussdb-binary",
    "handmade_json": "gaussdb-json",
    "handmade_text": "gaussdb-text",
}
"""By the beginning of a case's name."""

_TABLE_ROW = re.compile(r"\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (.*?) \| (.*) \|")


@dataclass(frozen=True)
class Case:
    """One capture. Counts and settings are those of the table in tests/golden/README.md."""

    name: str
    message_count: int
    record_count: int
    payload_bytes: int
    settings: str

    @property
    def format(self) -> str:
        """The name of the format that the messages are in."""
        first, second, *_ = self.name.split("_")
        return _FORMATS.get(f"{first}_{second}") or _FORMATS[first]

    @property
    def known_tables(self) -> list[str] | None:
        """What a reader of gaussdb-text has to be told: the tables with blanks in their names."""
        if self.format != "gaussdb-text" or "spaces" not in self.name:
            return None
        pairs = {(record["schema"], record["table"]) for record in self.truth if "table" in record}
        return ['"{}"."{}"'.format(*(name.replace('"', '""') for name in pair)) for pair in sorted(pairs)]

    @property
    def reading(self) -> dict[str, Any]:
        """The options with which the capture is read as its truth says."""
        return {"encoding": self.encoding} | ({"known_tables": self.known_tables} if self.known_tables else {})

    @property
    def is_handmade(self) -> bool:
        return self.name.startswith("handmade_")

    @property
    def is_batched(self) -> bool:
        return self.name.endswith("_batch")

    @property
    def has_bad_text(self) -> bool:
        """Whether some values are not valid in the encoding that the server declares."""
        return "badutf8" in self.name

    @property
    def encoding(self) -> str:
        match = re.search(r"text encoding (\w+)", self.settings)
        return match[1] if match else "utf-8"

    @property
    def threshold(self) -> int:
        """The size in bytes at which the sender closed a batch."""
        match = re.search(r"threshold=(\d+)", self.settings)
        return int(match[1]) if match else 0

    @property
    def path(self) -> Path:
        """The Parquet file with the messages."""
        return FOLDER / f"{self.name}.parquet"

    @property
    def client_text(self) -> bytes | None:
        """What the reference client prints for all messages, where the capture has it."""
        path = FOLDER / f"{self.name}.txt"
        return path.read_bytes() if path.exists() else None

    @cached_property
    def messages(self) -> list[bytes]:
        return self.array.to_pylist()

    @cached_property
    def array(self) -> pa.ChunkedArray:
        """The messages as they come out of the file."""
        return pq.read_table(self.path, columns=["payload"])["payload"]

    @cached_property
    def truth(self) -> list[dict[str, Any]]:
        with (FOLDER / f"{self.name}.truth.jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


def names_of_files() -> set[str]:
    """The cases that lie in the folder, whatever the table says."""
    return {path.stem for path in FOLDER.glob("*.parquet")}


def _cases() -> tuple[Case, ...]:
    rows = filter(None, map(_TABLE_ROW.fullmatch, (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()))
    return tuple(Case(row[1], int(row[2]), int(row[3]), int(row[4]), row[5]) for row in rows)


CASES = _cases()


BINARY = tuple(case for case in CASES if case.format == "gaussdb-binary")


@cache
def answer_of(case: Case, engine: str) -> Answer:
    """What an engine makes of a capture. Each engine reads each capture once; the tests share what it said."""
    return ask(case.array, engine, format=case.format, mode="PERMISSIVE", **case.reading)


def find_case(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


@cache
def type_names() -> dict[int, str]:
    with TYPES.open(newline="", encoding="utf-8") as file:
        return {int(row["oid"]): row["sql_name"] for row in csv.DictReader(file)}


def has_bad_text(record: dict[str, Any]) -> bool:
    """Whether a column of the record is not valid UTF-8."""
    return any("value_hex" in column for column in _columns(record))


def event_of(record: dict[str, Any], *, errors: str = "strict") -> wf.Event:
    """The event that a line of the truth describes; `errors` says what becomes of a `value_hex`."""
    lsn = record.get("lsn")
    kind = record["kind"]
    if kind in _ROW_CHANGES:
        images = {side: _image(record[side], errors) for side in ("new", "old")}
        return _ROW_CHANGES[kind](lsn=lsn, table_schema=record["schema"], table_name=record["table"], **images)
    if kind == "TRUNCATE":
        tables = tuple((table["schema"], table["table"]) for table in record["tables"])
        return wf.Truncate(lsn=lsn, tables=tables, restart_identity=record["restart_seqs"], cascade=record["cascade"])
    if kind == "DDL":
        names = ("prefix", "relid", "cmdtype", "size", "content", "owner")
        return wf.Ddl(lsn=lsn, sql=record.get("decoded"), **{name: record.get(name) for name in names})
    if kind == "HEARTBEAT":
        ends = {name: record[name] for name in ("wal_end", "wal_flushed")}
        return wf.Heartbeat(lsn=lsn, time=record["timestamp"], **ends)
    facts = {name: record[name] for name in ("csn", "first_lsn", "xid", "commit_time", "username") if name in record}
    if "origin_id" in record:
        facts["origin"] = record["origin_id"]
    return _TRANSACTIONS[kind](lsn=lsn, **facts)


def rows_of(truth: list[dict[str, Any]], *, errors: str = "strict") -> list[dict[str, Any]]:
    """The rows of the row-change table that a truth describes, in the form of `engines.rows`."""
    rows: list[dict[str, Any]] = []
    for record in truth:
        place = rows[-1]["record"] + 1 if rows and rows[-1]["message"] == record["msg"] else 0
        for table in record.get("tables", [record]):
            rows.append(_row(record, table, errors) | {"message": record["msg"], "record": place})
    return rows


def _row(record: dict[str, Any], table: dict[str, Any], errors: str) -> dict[str, Any]:
    given = record["new"] if record.get("new") is not None else record.get("old")
    new, old = (_pairs(record.get(side), errors) for side in ("new", "old"))
    sent = [column for column in given or () if not column.get("unchanged_toast")]
    untyped = any(_type_name(column) is None for column in sent)
    return {
        "kind": record["kind"],
        "lsn": _int64(record.get("lsn")),
        "xid": _int64(record.get("xid")),
        "csn": _int64(record.get("csn")),
        "commit_lsn": None,
        "commit_time": _commit_micros(record),
        "table_schema": table.get("schema"),
        "table_name": table.get("table"),
        "new": new,
        "old": old,
        "unchanged": [column["name"] for column in given or () if column.get("unchanged_toast")] or None,
        "types": None if given is None or untyped else [_type_name(column) for column in sent],
        "detail": _detail(record),
        "error": None,
        "raw": None,
    }


def _detail(record: dict[str, Any]) -> list[tuple[str, str]] | None:
    found = []
    if "first_lsn" in record:
        found.append(("first_lsn", "{:X}/{:X}".format(*divmod(record["first_lsn"], 1 << 32))))
    found += [("commit_time", record["commit_time"])] if "commit_time" in record else []
    found += [("origin", str(record["origin_id"]))] if "origin_id" in record else []
    found += [("username", record["username"])] if "username" in record else []
    if record["kind"] == "HEARTBEAT":
        names = {"wal_end": "wal_end", "wal_flushed": "wal_flushed", "time": "timestamp"}
        found += [(key, str(record[field])) for key, field in names.items()]
    if record["kind"] == "DDL":
        names = {"sql": "decoded"} | {key: key for key in ("content", "prefix", "relid", "cmdtype", "size", "owner")}
        found += [(key, str(record[field])) for key, field in names.items() if field in record]
    if record["kind"] == "TRUNCATE":
        names = {"restart_identity": "restart_seqs", "cascade": "cascade"}
        found += [(key, "true" if record[field] else "false") for key, field in names.items()]
    return found or None


def _commit_micros(record: dict[str, Any]) -> int | None:
    """Microseconds since 1970; None for a time outside of the years 1 to 9999, which only heartbeats have here."""
    if record["kind"] == "HEARTBEAT":
        time = record["timestamp"]
        micros: int = time * next(factor for limit, factor in _UNITS_BY_SIZE if abs(time) < limit)
        return micros if -62_135_596_800_000_000 <= micros < 253_402_300_800_000_000 else None
    if record.get("commit_time") in (None, "(timestamp out of range)"):
        return None
    match = re.fullmatch(r"(\d{4}-.{14})(?:\.(\d{1,6}))?([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?", record["commit_time"])
    assert match, record["commit_time"]
    local = datetime.strptime(match[1] + "+0000", "%Y-%m-%d %H:%M:%S%z") - _EPOCH
    offset = int(match[4]) * 3600 + int(match[5] or 0) * 60 + int(match[6] or 0)
    seconds = local.days * 86400 + local.seconds - (offset if match[3] == "+" else -offset)
    return seconds * 10**6 + int((match[2] or "").ljust(6, "0"))


def _columns(record: dict[str, Any]) -> list[dict[str, Any]]:
    return (record.get("new") or []) + (record.get("old") or [])


def _names(columns: list[dict[str, Any]]) -> list[str]:
    return [column.get("name", f"${number}") for number, column in enumerate(columns, 1)]


def _value(column: dict[str, Any], errors: str) -> Any:
    if column.get("unchanged_toast"):
        return wf.UNCHANGED
    if "value_hex" in column:
        return bytes.fromhex(column["value_hex"]).decode("utf-8", errors)
    return column["value"]


def _pairs(columns: list[dict[str, Any]] | None, errors: str) -> list[tuple[str, str | None]] | None:
    if columns is None:
        return None
    cells = zip(_names(columns), (_value(column, errors) for column in columns), strict=True)
    return [(name, value) for name, value in cells if value is not wf.UNCHANGED]


def _image(columns: list[dict[str, Any]] | None, errors: str) -> wf.TupleData | None:
    if columns is None:
        return None
    return wf.TupleData(
        tuple(_names(columns)),
        tuple(_value(column, errors) for column in columns),
        tuple(_type_name(column) or "?" for column in columns),
    )


def _type_name(column: dict[str, Any]) -> str | None:
    """The name of a column's type; None where the message does not say it."""
    if "type_oid" in column:
        return type_names().get(column["type_oid"], f"oid:{column['type_oid']}")
    return column.get("type_name")


def _int64(value: int | None) -> int | None:
    """The int64 with the same bits."""
    return None if value is None else int.from_bytes(value.to_bytes(8, "big"), "big", signed=True)
