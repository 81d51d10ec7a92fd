"""Write tests/captures/ anew: `python -m tests.servers.capture`, from the root of the repository."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from wireformat import lsn_value

from .captures import FOLDER, TABLES
from .installations import MISSING, installations
from .readings import LIVE, Reading, peek, readings_of
from .running import run_workload
from .server import Server, running
from .tables import all_tables
from .workload import SEED

CHOSEN = {
    15: ("pgoutput-3-streaming", "test-decoding-"),
    16: ("pgoutput-4-two-phase",),
    18: ("pgoutput-",),
}
"""Which readings are kept, by the beginnings of their names: all protocols of the newest server, the others' newest."""


def main() -> None:
    """Run the workload on each server and store what it sends."""
    FOLDER.mkdir(exist_ok=True)
    for version, prefixes in CHOSEN.items():
        if version not in installations():
            raise SystemExit(MISSING[version])
        with running(installations()[version]) as server:
            stream = run_workload(server)
            with server.connect() as session:
                for reading in readings_of(version, test_decoding=server.installation.has_test_decoding):
                    if reading.name.startswith(prefixes) and not reading.live:
                        messages = peek(session, reading)
                        columns = {
                            "lsn": pa.array([lsn_value(one.lsn) for one in messages], pa.int64()),
                            "xid": pa.array([one.xid for one in messages], pa.int64()),
                            "payload": pa.array([one.data for one in messages], pa.binary()),
                        }
                        _write(columns, FOLDER / f"{version}-{reading.name}.parquet", server, reading)
                if stream:
                    sent = {"payload": pa.array(stream.payloads, pa.binary())}
                    _write(sent, FOLDER / f"{version}-{LIVE.name}.parquet", server, LIVE)
                _write(_tables(server), FOLDER / f"{version}-{TABLES}.parquet", server, None)


def _tables(server: Server) -> dict[str, pa.Array]:
    with server.connect() as session:
        rows = [(*table, list(row.items())) for table, rows in all_tables(session).items() for row in rows]
    schemas, names, cells = zip(*rows, strict=True)
    kind = pa.map_(pa.string(), pa.string())
    return {"table_schema": pa.array(schemas), "table_name": pa.array(names), "row": pa.array(cells, kind)}


def _write(columns: dict[str, pa.Array], path: Path, server: Server, reading: Reading | None) -> None:
    facts = {"server": server.installation.full_version, "seed": SEED}
    if reading:
        facts |= {"plugin": reading.plugin, "options": reading.options, "two_phase_slot": reading.two_phase}
    table = pa.table(columns).replace_schema_metadata({"capture": json.dumps(facts)})
    pq.write_table(table, path, compression="zstd", compression_level=19, write_statistics=False, store_schema=True)
    print(f"{path.name}: {table.num_rows} rows, {path.stat().st_size} bytes")  # noqa: T201 - a program


if __name__ == "__main__":
    main()
