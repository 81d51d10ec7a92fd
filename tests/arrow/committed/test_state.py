"""The saved state of transactions: kept ones are read, damaged and foreign ones are refused, and it is plain data."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.committed import state as transactions_state
from wireformat.arrow.committed.spill import RowSpill
from wireformat.stream import saved
from wireformat.stream.positions import read_position, write_position
from wireformat.stream.saved import HEADER_BYTES, check, seal, unseal

from ...histories import histories, table
from ...mutations import changed_bytes, inserted_and_deleted, truncations
from ..saved_state import AFTER, BEFORE, HISTORIES, KEPT, STATE, Files, change, read

VERSIONS = sorted(path.name for path in KEPT.glob("version-*"))


def fields_of(state: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(state[HEADER_BYTES:])
    return found


def sealed(fields: Any, version: int = 1) -> bytes:
    return seal(transactions_state.KIND, version, json.dumps(fields).encode())


def delivered(transactions: Any, rows: pa.Table) -> pa.Table:
    found = [out for batch in rows.to_batches() for out in transactions.take(batch)]
    return pa.Table.from_batches(found, wf.arrow.committed_schema(rows.schema))


def one_open(store: Any) -> bytes:
    """The state of a transaction that has begun."""
    transactions = wf.arrow.Transactions(store=store)
    assert len(delivered(transactions, table([wf.Begin(xid=1), change("t")]))) == 0
    return transactions.state


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_kept_state_goes_on(version: str, name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(KEPT / version / name, tmp_path / name))
    options, _, _ = HISTORIES[name]
    before, after = read(folder / BEFORE), read(folder / AFTER)
    whole = wf.arrow.transactions([before, after], **options)
    first = wf.arrow.transactions(before, **options)
    store = Files(folder)
    transactions = wf.arrow.Transactions(**options, store=store, state=(folder / STATE).read_bytes())
    assert transactions.open.equals(wf.arrow.open_transactions(before, **options))
    rest = delivered(transactions, after)
    assert pa.concat_tables([first, rest]).equals(whole)
    assert {"streamed", "undone"} - {*rest["table_name"].to_pylist()} == {"undone"}
    assert store.handles == []


@pytest.mark.parametrize("name", HISTORIES)
def test_this_release_writes_the_newest_version_as_it_was_kept(name: str, tmp_path: Path) -> None:
    """A change of what is written, as by another name, needs another version."""
    folder = Path(shutil.copytree(KEPT / VERSIONS[-1] / name, tmp_path / name))
    kept = (folder / STATE).read_bytes()
    options, before, _ = HISTORIES[name]
    assert wf.arrow.Transactions(**options, store=Files(folder), state=kept).state == kept
    for handle in Files(folder).handles:
        Files(folder).drop(handle)
    transactions = wf.arrow.Transactions(**options, store=Files(folder))
    delivered(transactions, table(before))
    assert fields_of(transactions.state) == fields_of(kept)


@given(histories(), st.integers(0, 60), st.sampled_from(["commit", "prepare"]), st.booleans())
def test_a_state_says_everything(events: list[wf.Event], place: int, two_phase: str, drop_resent: bool) -> None:
    """Wherever it is written: what comes out and what is open is as in one piece, and so is the state at the end."""
    options: dict[str, Any] = {"two_phase": two_phase, "drop_resent": drop_resent}
    rows = table(events)
    store, other = RowSpill(1 << 20), RowSpill(1 << 20)
    first = wf.arrow.Transactions(**options, store=store)
    before = delivered(first, rows.slice(0, place))
    second = wf.arrow.Transactions(**options, store=store, state=first.state)
    found = [before, delivered(second, rows.slice(place))]
    alone = wf.arrow.Transactions(**options, store=other)
    expected = [delivered(alone, rows.slice(0, place)), delivered(alone, rows.slice(place))]
    assert found == expected
    assert second.open.equals(alone.open)
    assert second.position == alone.position
    wanted, got = fields_of(alone.state), fields_of(second.state)
    assert {**got, "batches": None} == {**wanted, "batches": None}


def test_it_is_plain_data() -> None:
    """A line of JSON, and JSON; nothing of it is the name of a class or of a module."""
    state = one_open(RowSpill(1 << 20))
    header, fields = json.loads(state[:HEADER_BYTES]), fields_of(state)
    assert [*header] == ["state", "version", "crc32"]
    assert (header["state"], header["version"]) == ("wireformat.transactions", 1)
    assert fields["open"]["stage"] == ["plain"]
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(state)


def test_unknown_gids_are_handed_through() -> None:
    store = RowSpill(1 << 20)
    fields = fields_of(one_open(store))
    assert fields["unknown_prepared"] == []
    fields["unknown_prepared"] = ["a", "b"]
    again = wf.arrow.Transactions(store=store, state=sealed(fields)).state
    assert fields_of(again) == fields


FOREIGN: dict[str, tuple[bytes, str]] = {
    "a pickle": (pickle.dumps(("machine", 0)), "expected one of wireformat.transactions, got a pickle, which is never"),
    "nothing": (
        b"",
        "expected one of wireformat.transactions, got other bytes: pass the state that was saved, or start over",
    ),
    "of another kind": (seal("wireformat.rows", 1, b"{}"), "expected one of wireformat.transactions, got other bytes"),
    "of another version": (
        sealed({}, 2),
        r"expected version 1 of wireformat.transactions, which this release reads, got version 2: continue with",
    ),
    "of no version": (
        b'{"state": "wireformat.transactions", "version": true}'.ljust(HEADER_BYTES),
        "got other bytes",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_another_state_is_refused(name: str) -> None:
    state, words = FOREIGN[name]
    with pytest.raises(wf.StateError, match=words):
        wf.arrow.Transactions(state=state)


def test_versions_that_are_read_are_named() -> None:
    assert unseal("k", (1, 2), seal("k", 2, b"x"))[0] == 2
    with pytest.raises(wf.StateError, match=r"expected version 1 or 2 of k, .* got version 3"):
        unseal("k", (1, 2), seal("k", 3, b"x"))


def test_damage_is_found() -> None:
    """Every cut and every changed byte: the checksum tells, or the header does."""
    store = RowSpill(1 << 20)
    state = one_open(store)
    for other in [*truncations(state), *changed_bytes(state), *inserted_and_deleted(state)]:
        if other != state:
            try:
                again = wf.arrow.Transactions(store=store, state=other)
            except wf.StateError:
                continue
            assert other[:HEADER_BYTES].split() == state[:HEADER_BYTES].split()
            assert again.state == state


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(fields: dict[str, Any]) -> None:
        *outer, name = path.split(".")
        for key in outer:
            fields = fields[key]
        fields[name] = value

    return change


def _without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda fields: fields.pop(name)


WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a missing field": (_without("position"), "expected the fields two_phase, .* at the top, got none named position"),
    "an unknown field": (_set("more", 1), "at the top, got 1 unknown"),
    "an unknown column": (_set("parts.more", []), "in parts, got 1 unknown"),
    "a table that is none": (_set("open", []), "expected an object in open, got a list"),
    "a column that is none": (_set("open.xid", 1), "expected a list in open.xid, got a number"),
    "a short column": (_set("open.xid", []), "expected columns of equal length in open, got shorter and longer ones"),
    "text for a number": (_set("open.xid", ["1"]), "an unsigned number of 64 bits or null in open.xid, got a text"),
    "a fraction": (_set("rows_seen", 1.0), "expected a count in rows_seen, got a number with a fraction"),
    "a flag": (_set("rows_seen", True), "expected a count in rows_seen, got true or false"),
    "null": (_set("drop_resent", None), "expected true or false in drop_resent, got null"),
    "a large number": (_set("open.xid", [1 << 64]), "open.xid, got a number out of range"),
    "a negative number": (_set("position.lsn", -1), "position.lsn, got a number out of range"),
    "half a character": (_set("unknown_prepared", ["\ud800"]), "unknown_prepared, got half of a surrogate pair"),
    "another stage": (_set("open.stage", ["ended"]), "expected one of plain, block, streamed, prepared in open.stage"),
    "no gid": (_set("open.stage", ["prepared"]), "expected a unique gid for each prepared transaction"),
    "no xid": (
        lambda fields: fields["open"].update(stage=["streamed"], xid=[None]),
        "expected a unique xid for each streamed transaction",
    ),
    "a batch that is none": (
        _set("parts.batch", [1]),
        "expected row ranges of open transactions in batches of the state",
    ),
    "a transaction that is none": (
        _set("parts.transaction", [1]),
        "expected row ranges of open transactions in batches of the state",
    ),
    "rows behind the batch": (_set("parts.stop", [3]), "expected row ranges within their batches that do not overlap"),
    "no rows": (_set("parts.stop", [0]), "expected row ranges within their batches that do not overlap"),
    "more rows than there are": (
        _set("parts.count", [3]),
        "expected row ranges within their batches that do not overlap",
    ),
    "undone of nobody": (_set("undone", {"transaction": [1], "xid": [1]}), "expected transactions of `open` in"),
    "a batch without rows": (
        _set("batches", {"handle": [0, 1], "rows": [2, 1], "row_bytes": [1, 1]}),
        "expected an open row in each batch",
    ),
    "a handle twice": (
        _set("batches", {"handle": [0, 0], "rows": [2, 1], "row_bytes": [1, 1]}),
        "expected a unique handle for each batch",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_fields_that_cannot_be(name: str) -> None:
    """With the right checksum: only who writes states wrongly makes such."""
    store = RowSpill(1 << 20)
    alter, words = WRONG[name]
    fields = fields_of(one_open(store))
    alter(fields)
    with pytest.raises(
        wf.StateError, match=rf"saved state: wireformat.transactions: .*{words}.* restore it from a copy"
    ):
        wf.arrow.Transactions(store=store, state=sealed(fields))


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b"\xff", b"1" * 10_000, b"null", b"[]"])
def test_text_that_is_not_the_json_of_a_state(text: bytes) -> None:
    with pytest.raises(wf.StateError, match=r"expected (JSON|an object at the top), got"):
        wf.arrow.Transactions(state=seal(transactions_state.KIND, 1, text))


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 2, 5, 7, 11, 36, (1 << 60), (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -1, -(1 << 63), 1 << 70]),
    st.sampled_from(["", "plain", "block", "streamed", "prepared", "commit", "prepare", "first", "BEGIN", "COMMIT"]),
    st.just(1.5),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=4), st.dictionaries(st.text(max_size=3), SCALARS, max_size=2))


def places(found: Any) -> list[tuple[Any, Any]]:
    """Every place in nested fields that can have another value."""
    items = [*found.items()] if isinstance(found, dict) else [*enumerate(found)] if isinstance(found, list) else []
    return [place for key, value in items for place in [(found, key), *places(value)]]


@given(st.sampled_from([*HISTORIES]), st.data())
def test_whatever_fields_say_only_our_errors_come_out(name: str, data: st.DataObject) -> None:
    """Where some are others and all still fits, the stream goes on with that; nothing else is raised then either."""
    options, before, after = HISTORIES[name]
    store = RowSpill(1 << 20)
    first = wf.arrow.Transactions(**options, store=store)
    delivered(first, table(before))
    fields = fields_of(first.state)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places(fields)))
        if data.draw(st.integers(0, 9)) or isinstance(holder, list):
            holder[key] = data.draw(VALUES if data.draw(st.booleans()) else SCALARS)
        else:
            del holder[key]
    try:
        second = wf.arrow.Transactions(**options, store=store, state=sealed(fields))
        assert len(second.open) >= 0
        delivered(second, table(after))
        assert len(second.state) > HEADER_BYTES
    except wf.WireformatError:
        pass


def test_options_are_those_of_the_state() -> None:
    store = RowSpill(1 << 20)
    state = one_open(store)
    with pytest.raises(wf.OptionError, match=r"two_phase: expected the one .* saved, 'commit', got 'prepare'"):
        wf.arrow.Transactions(store=store, state=state, two_phase="prepare")
    with pytest.raises(wf.OptionError, match=r"drop_resent: expected the one .* saved, True, got False"):
        wf.arrow.Transactions(store=store, state=state, drop_resent=False)


def test_columns_are_those_of_the_held_rows() -> None:
    """Unless none are held."""
    store = RowSpill(1 << 20)
    state = one_open(store)
    end = table([wf.Commit(xid=1, lsn=5)])
    more = end.append_column("more", pa.array([1]))
    with pytest.raises(wf.OptionError, match=r"open rows in the state, message, .* raw, got message, .* more"):
        delivered(wf.arrow.Transactions(store=store, state=state), more)
    place = end.schema.get_field_index("raw")
    other = end.set_column(place, "raw", pa.array(["x"]))
    with pytest.raises(wf.OptionError, match=r"open rows in the state, .* raw binary, got .* raw string"):
        delivered(wf.arrow.Transactions(store=store, state=state), other)
    transactions = wf.arrow.Transactions(store=store, state=state)
    assert len(delivered(transactions, end)) == 1
    rows = table([wf.Begin(xid=2), change("t"), wf.Commit(xid=2, lsn=7)]).append_column("more", pa.array([1, 2, 3]))
    found = delivered(wf.arrow.Transactions(store=store, state=transactions.state), rows)
    assert found["more"].to_pylist() == [2]


@pytest.mark.parametrize("end", [wf.Commit(xid=1, lsn=5), wf.Abort(xid=1)], ids=["read", "dropped"])
def test_the_store_must_be_that_of_the_state(end: wf.Event) -> None:
    state = one_open(RowSpill(1 << 20))
    with pytest.raises(wf.StateError, match="in the store, got none or others: pass the store with which"):
        delivered(wf.arrow.Transactions(store=RowSpill(1 << 20), state=state), table([end]))
    other = RowSpill(1 << 20)
    other.put(pa.record_batch({"x": [1]}))
    with pytest.raises(wf.StateError, match="in the store, got none or others"):
        assert len(wf.arrow.Transactions(store=other, state=state).open)


def test_a_handle_that_cannot_be_saved() -> None:
    class Tuples(RowSpill):
        def put(self, batch: pa.RecordBatch) -> Any:
            return (super().put(batch),)

    with pytest.raises(wf.OptionError, match="option store: expected handles that are texts or 64-bit integers"):
        one_open(Tuples(1 << 20))


def test_within_a_batch_there_is_neither_a_state_nor_another_batch() -> None:
    rows = table([wf.Begin(xid=1), change("t"), wf.Commit(xid=1, lsn=5), wf.Begin(xid=2), change("t")])
    transactions = wf.arrow.Transactions(store=RowSpill(1 << 20))
    (batch,) = rows.to_batches()
    found = transactions.take(batch)
    next(found)
    for ask in (lambda: transactions.state, lambda: transactions.open, lambda: next(transactions.take(batch))):
        with pytest.raises(wf.StateError, match="the rows of the last batch were not read to their end"):
            ask()
    assert list(found) == []
    assert fields_of(transactions.state)["open"]["xid"] == [2]
    transactions.close()
    for ask in (lambda: transactions.state, lambda: transactions.open, lambda: transactions.take(batch)):
        with pytest.raises(wf.StateError, match="they were closed"):
            ask()


def test_a_batch_whose_rows_nobody_reads_is_not_left_out_in_silence() -> None:
    (batch,) = table([wf.Begin(xid=1), change("t"), wf.Commit(xid=1, lsn=5)]).to_batches()
    transactions = wf.arrow.Transactions()
    transactions.take(batch)
    with pytest.raises(wf.StateError, match="the rows of the last batch were not read to their end"):
        transactions.take(batch)


POSITIONS = st.builds(
    wf.Position,
    st.integers(0, 1 << 60),
    *[st.none() | st.integers(0, (1 << 64) - 1)] * 2,
    st.dictionaries(st.text(), st.none() | st.integers(0, (1 << 64) - 1)).map(lambda found: tuple(found.items())),
)


@given(POSITIONS)
def test_positions_come_back(position: wf.Position) -> None:
    assert read_position(write_position(position)) == position


def test_a_position_in_metadata_is_checked() -> None:
    open = wf.arrow.open_transactions(table([wf.Begin(xid=1), change("t")]))
    key = b"wireformat.position"
    position = open.schema.metadata[key]
    assert json.loads(position[HEADER_BYTES:]) == {
        "transactions": 0,
        "lsn": None,
        "csn": None,
        "prepared": {"gid": [], "lsn": []},
    }
    for other, words in [
        (b"[0, null, null, []]", "expected one of wireformat.position, got other bytes"),
        (position.replace(b'"version": 1', b'"version": 9'), "expected version 1 of wireformat.position, .* version 9"),
        (position.replace(b":0,", b":1,"), "the checksum differs"),
    ]:
        with pytest.raises(wf.StateError, match=words):
            wf.arrow.transactions(open.replace_schema_metadata({key: other}))


def test_shapes_of_every_kind() -> None:
    """A list of texts and numbers has both checked."""
    check({"names": [1, "a"]}, {"names": [saved.NAME]}, "k")
    for values in ([1 << 65, "a"], [1, "\udc00"]):
        with pytest.raises(wf.StateError, match="k: expected a text or a whole number of 64 bits in names"):
            check({"names": values}, {"names": [saved.NAME]}, "k")


def test_no_state_before_all_rows_were_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing is open: a state says that they were."""
    monkeypatch.setattr("wireformat.arrow.committed.output.OUTPUT_BYTES", 1)
    rows = wf.arrow.changes([b"BEGIN 5", b"table s.t: INSERT: a[integer]:1", b"COMMIT 5"] * 3, "test-decoding")
    with wf.arrow.Transactions() as transactions:
        taken = transactions.take(rows.combine_chunks().to_batches()[0])
        next(taken)
        with pytest.raises(wf.StateError, match="not read to their end"):
            _ = transactions.state
        assert sum(len(batch) for batch in taken) <= 2
        assert transactions.state
