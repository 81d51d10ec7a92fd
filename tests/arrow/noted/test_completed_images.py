"""Old images that leave out NULLs: their rows share layouts, and tell the same as they do one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.arrow.columns import completed_layouts, known_layouts
from wireformat.arrow.columns.layouts import Layout
from wireformat.arrow.scan import message_batches

FORMAT = "test-decoding"
TYPES = ("integer", "text", "bigint")


def history(
    random: random.Random, *, columns: int, transactions: int, kinds: str = "IIUUUD", alters: bool = True
) -> Iterator[bytes]:
    """Yields transactions on tables under REPLICA IDENTITY FULL; most values are NULL.

    alters   whether the tables get columns, and lose some. Some transactions are prepared then, and some of these
             rolled back, with their columns, and some UPDATEs have no new row
    """
    names = [f"c{number}" for number in range(columns)]
    prepared: dict[int, list[str]] = {}
    for xid in range(transactions):
        before = [*names]
        if alters and not random.randrange(8):
            names.insert(random.randint(0, len(names)), f"d{xid}")
        if alters and not random.randrange(8) and len(names) > 2:
            names.pop(random.randrange(len(names)))
        yield b"BEGIN %d" % xid
        for _ in range(random.randint(1, 12)):
            kind = random.choice(kinds)
            old, new = row(random, names), row(random, names, may_lack_values=kind == "U")
            left = {name: value for name, value in old.items() if value != "null"}
            if not random.randrange(10):
                left = old
            sent = said(new) if not alters or random.randrange(12) else "(no-tuple-data)"
            text = {
                "I": f"INSERT: {said(new)}",
                "U": f"UPDATE: old-key: {said(left)} new-tuple: {sent}",
                "D": f"DELETE: {said(left)}",
            }[kind]
            table = random.choice(("t", "t", "T"))
            yield f"table public.{table if table == 't' else chr(34) + table + chr(34)}: {text}".encode()
        if not alters or random.randrange(4):
            yield b"COMMIT %d" % xid
        else:
            prepared[xid] = before
            yield b"PREPARE TRANSACTION 'g%d', txid %d" % (xid, xid)
        for other in [*prepared]:
            if not random.randrange(3):
                is_kept = random.randrange(2)
                names = names if is_kept else prepared[other]
                yield b"%s PREPARED 'g%d', txid %d" % (b"COMMIT" if is_kept else b"ROLLBACK", other, other)
                del prepared[other]


def row(random: random.Random, names: list[str], *, may_lack_values: bool = False) -> dict[str, str]:
    found = {"id": str(random.randrange(30))}
    for number, name in enumerate(names):
        value = f"'{number}'" if type_of(name) == "text" else str(number)
        unsent = ["unchanged-toast-datum"] if may_lack_values and name in ("c1", "c4") else []
        found[name] = random.choice(["null", "null", value, *unsent])
    return found


def type_of(name: str) -> str:
    return "integer" if name == "id" else TYPES[int(name[1:]) % len(TYPES)]


def said(values: dict[str, str]) -> str:
    return " ".join(f"{name}[{type_of(name)}]:{value}" for name, value in values.items())


@pytest.mark.parametrize("few", [0, 2, completed_layouts.FEW_LAYOUTS])
@pytest.mark.parametrize("kinds", ["IIUUUD", "UUUD", "IDDD", "D"])
@pytest.mark.parametrize("seed", range(8))
def test_both_engines_agree(seed: int, kinds: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completed_layouts, "FEW_LAYOUTS", few)
    monkeypatch.setattr(message_batches, "COUNTED_BYTES", 1 << 40)  # each array is read by itself
    random_ = random.Random(seed)
    messages = [*history(random_, columns=6, transactions=40, kinds=kinds)]
    cuts = sorted(random_.choices(range(len(messages)), k=random_.choice([0, 4, 60])))
    arrays = [pa.array(messages[start:stop], pa.binary()) for start, stop in pairwise([0, *cuts, len(messages)])]
    found = []
    for engine in ("scan", "declaration"):
        capture = wf.Capture(pa.chunked_array(arrays), FORMAT, engine=engine)
        found.append([capture.tables().to_pylist(), capture.committed().read_all()])
        for options in ({}, {"images": "both"}, {"complete": True}, {"split_key_changes": True, "keys": ["id"]}):
            found[-1] += [typed(capture, table, **options) for table in ("public.t", 'public."T"')]
    assert found[0] == found[1]


def typed(capture: wf.Capture, table: str, **options: Any) -> pa.Table | str:
    """Returns the rows of a table, or why there are none: the type of a column may not be known."""
    try:
        found: pa.Table = capture.typed(table, **options).read_all()
    except wf.BadRows as error:
        return str(error)
    return found


@pytest.fixture
def layouts(monkeypatch: pytest.MonkeyPatch) -> list[Layout]:
    """The layouts that are read, each of which takes the time of many rows."""
    found: list[Layout] = []
    read = known_layouts._layouts
    monkeypatch.setattr(
        known_layouts, "_layouts", lambda *given: [layout for layout in read(*given) if not found.append(layout)]
    )
    return found


def test_updates_that_leave_out_other_columns_share_a_layout(layouts: list[Layout]) -> None:
    messages = [*history(random.Random(0), columns=30, transactions=200, kinds="IUU", alters=False)]
    wf.Capture(messages, FORMAT).typed("public.t").read_all()
    old_images = {message.partition(b" new-tuple")[0] for message in messages if b"public.t: UPDATE" in message}
    assert len(layouts) < len(old_images) / 20


@pytest.mark.parametrize("question", ["tables", "typed", "typed_all"])
def test_deletes_that_leave_out_other_columns_share_a_layout(
    question: str, layouts: list[Layout], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where their columns are known from messages that were read before."""
    monkeypatch.setattr(message_batches, "COUNTED_BYTES", 1 << 40)  # each array is read by itself
    random_ = random.Random(0)
    arrays = [
        [*history(random_, columns=30, transactions=100, kinds=kinds, alters=False)] for kinds in ("ID", "D", "D")
    ]
    messages = pa.chunked_array(arrays, pa.binary())
    schema = wf.Capture(messages, FORMAT, drop_resent=False).tables()
    layouts.clear()
    capture = wf.Capture(messages, FORMAT, drop_resent=False)
    ask = {
        "tables": capture.tables,
        "typed": lambda: capture.typed("public.t", schema=schema).read_all(),
        "typed_all": lambda: [*capture.typed_all()],
    }
    ask[question]()
    old_images = {message for messages in arrays for message in messages if b"public.t: DELETE" in message}
    assert 0 < len(layouts) < len(old_images) / 20


def test_updates_without_a_new_row_are_no_deletes() -> None:
    names = [f"c{number}" for number in range(12)]
    insert = f"INSERT: {said(dict.fromkeys(names, '7'))}"
    deletes = [f"DELETE: {said({one: '1', other: '1'})}" for one, other in combinations(names, 2)]
    update = f"UPDATE: old-key: {said({'c0': '1'})} new-tuple: (no-tuple-data)"
    for rows in ([*deletes, *[update] * 100], [*[update] * 100, *deletes]):
        messages = [b"BEGIN 1", *(f"table a.t: {text}".encode() for text in [insert, *rows]), b"COMMIT 1"]
        found, expected = (
            wf.Capture(messages, FORMAT, engine=engine).typed("a.t").read_all() for engine in ("scan", "declaration")
        )
        assert found == expected


def test_types_of_a_delete_with_a_new_row_are_those_of_this_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completed_layouts, "FEW_LAYOUTS", 0)
    facts: dict[str, Any] = {"table_schema": "a", "table_name": "t"}

    def image(names: str, type: str = "integer") -> wf.TupleData:
        return wf.TupleData(tuple(names), ("1",) * len(names), (type,) * len(names))

    events: list[wf.Event] = [
        wf.Begin(xid=1),
        wf.Delete(**facts, new=image("iabc", "text"), old=image("bc")),
        *(wf.Delete(**facts, old=image(names)) for names in ("i", "ia", "b")),
        wf.Insert(**facts, new=image("iab")),
        wf.Insert(**facts, new=image("iabc")),
        wf.Delete(**facts, new=replace(image("ia"), types=("integer", "text")), old=image("ab")),
        *(wf.Delete(**facts, old=image(names)) for names in ("i", "ia", "b")),
        wf.Commit(xid=1),
    ]
    messages = [*map(bytes, wf.encode(events, "mppdb-json"))]
    found, expected = (
        wf.Capture(messages, "mppdb-json", engine=engine).tables().to_pylist() for engine in ("scan", "declaration")
    )
    assert found == expected


def test_few_columns_of_many_are_left_as_they_are(layouts: list[Layout]) -> None:
    """The values of a row with few of many columns would take a hundred times the memory."""
    names = [f"c{number}" for number in range(1000)]
    deletes = [b"table a.t: DELETE: %s[text]:'x'" % name.encode() for name in names]
    insert = ("table a.t: INSERT: " + " ".join(f"{name}[text]:null" for name in names)).encode()
    messages = [b"BEGIN 1", insert, *deletes, b"COMMIT 1"]
    rows = wf.Capture(messages, FORMAT).typed("a.t").read_all()
    assert [rows[name].to_pylist()[number] for number, name in enumerate(names, 1)] == ["x"] * len(names)
    assert max(len(layout.old or ()) for layout in layouts) == 1


def test_rejects_have_the_columns_that_their_images_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completed_layouts, "FEW_LAYOUTS", 0)
    new = "id[integer]:1 b[text]:null c[text]:'x'"
    texts = [f"INSERT: {new}", f"UPDATE: old-key: id[integer]:0 c[text]:'y' new-tuple: {new}", "DELETE: b[text]:'z'"]
    messages = [b"BEGIN 1", *(f"table a.t: {text}".encode() for text in texts), b"COMMIT 1"]
    capture = wf.Capture(messages, FORMAT, mode="DROPMALFORMED")
    path = tmp_path / "rejects.parquet"
    schema = {"id": "integer", "b": "date", "c": "date"}
    capture.write(tmp_path / "lake", schemas={"a.t": schema}, rejects=path)
    rejects = pq.read_table(path).to_pylist()
    assert [row["kind"] for row in rejects] == ["INSERT", "UPDATE", "DELETE"]
    assert [row["old"] for row in rejects] == [None, [("id", "0"), ("c", "y")], [("b", "z")]]


def test_deletes_are_of_their_own_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last whole row before one may be of a transaction that was rolled back, and changed the columns."""
    monkeypatch.setattr(completed_layouts, "FEW_LAYOUTS", 0)
    full = b"table public.t: INSERT: id[integer]:%d a[text]:%s b[bigint]:5"
    update = b"table public.t: UPDATE: old-key: id[integer]:2 a[text]:'x' new-tuple: id[integer]:2 a[text]:'y'"
    messages = [
        *(b"BEGIN 1", full % (2, b"'x'"), full % (1, b"null"), b"COMMIT 1"),
        *(b"BEGIN 2", b"table public.t: INSERT: id[integer]:3 a[text]:'x'", b"COMMIT 2"),  # after DROP COLUMN b
        *(b"BEGIN 3", full % (4, b"'x'"), b"PREPARE TRANSACTION 'g', txid 3", b"ROLLBACK PREPARED 'g', txid 3"),
        *(b"BEGIN 4", b"table public.t: DELETE: id[integer]:1", update, b"COMMIT 4"),
    ]
    for engine in ("scan", "declaration"):
        capture = wf.Capture(messages, FORMAT, engine=engine)
        capture.write(tmp_path / engine, state="latest", keys={"public.t": ["id"]})
        (file,) = (tmp_path / engine).glob("public*/**/*.parquet")
        rows = pq.read_table(file, columns=["id", "a", "b"]).sort_by("id").to_pylist()
        assert rows == [{"id": 2, "a": "y", "b": None}, {"id": 3, "a": "x", "b": None}]
