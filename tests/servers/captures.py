"""The captures of real servers in tests/captures/: reads them, no server needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

FOLDER = Path(__file__).parent.parent / "captures"
TABLES = "tables"


@dataclass(frozen=True)
class Capture:
    """All messages of one reading, in order."""

    name: str
    facts: dict[str, Any]
    """server, seed, plugin, options, two_phase_slot."""
    messages: list[bytes]
    lsns: list[int]
    """As the SQL function gives them; none where the messages came over a replication connection."""
    xids: list[int]


def capture_names(plugin: str = "") -> list[str]:
    """The names of the captures, as `18-pgoutput-1-binary`; with a beginning of the part after the version."""
    names = [path.stem for path in sorted(FOLDER.glob("*.parquet"))]
    return [name for name in names if name.split("-", 1)[1].startswith(plugin) and not name.endswith(TABLES)]


@cache
def read_capture(name: str) -> Capture:
    """The capture of this name."""
    table = pq.read_table(FOLDER / f"{name}.parquet")
    facts = json.loads(table.schema.metadata[b"capture"])
    lists = table.to_pydict()
    return Capture(name, facts, lists["payload"], lists.get("lsn", []), lists.get("xid", []))


def read_tables(version: int | str) -> dict[tuple[str, str], list[dict[str, str | None]]]:
    """What the tables of this server hold after the workload; tables without rows are left out."""
    found: dict[tuple[str, str], list[dict[str, str | None]]] = {}
    for row in pq.read_table(FOLDER / f"{version}-{TABLES}.parquet").to_pylist():
        found.setdefault((row["table_schema"], row["table_name"]), []).append(dict(row["row"]))
    return found
