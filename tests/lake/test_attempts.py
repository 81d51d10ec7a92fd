"""Several attempts to write a chunk, of which one wins: the others leave its files, and the lake, as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wireformat as wf
from wireformat.lake import chunks
from wireformat.lake import lake as lake_module
from wireformat.lake.chunks import LakePlan, joined, publish
from wireformat.lake.lake import Lake
from wireformat.lake.options import Choice, LakeOptions
from wireformat.lake.result import TableFiles
from wireformat.lake.stored import store as store_module
from wireformat.lake.stored.manifest import Manifest
from wireformat.lake.stored.store import Store
from wireformat.lake.write import LakeWriter
from wireformat.options import ReadOptions

from .writing import KEYS, KINDS, MESSAGES, capture_of, check, files_of, write

END = wf.CapturePosition("gaussdb-binary")
BEGUN = ".wireformat-begun"
FORMATS = ["parquet", "delta"]


class SourceError(Exception):
    """The source of an attempt has gone."""


def opened(folder: Path, format: str, state: str = "changes", writer: str = "0f") -> tuple[Lake, LakePlan]:
    """A lake that is being written to, and what its tasks get."""
    others: dict[str, Any] = dict.fromkeys(
        ("tables", "partition_by", "schemas", "rejects", "filesystem", "storage_options")
    )
    keys = KEYS if state == "latest" else None
    options = LakeOptions.check(format=format, state=state, keys=keys, **others, mode="FAILFAST")
    lake = options.opened(options.store(folder), "gaussdb-binary", writer)
    lake.begin()
    return lake, LakePlan(folder, options, "gaussdb-binary", lake.manifest, lake.writer)


def attempt(plan: LakePlan, *, fails: bool = False) -> list[TableFiles]:
    """An attempt to write the only chunk, which may fail when it has written its rows."""
    chosen = ReadOptions.check()
    whole = capture_of(MESSAGES).stream_of(chosen, "FAILFAST")

    def rows(through: Any) -> Iterator[Any]:
        yield from whole.rows(through)
        raise SourceError

    stream = whole._replace(rows=rows) if fails else whole
    memory = 1 if fails else 1 << 20  # with so little, rows go to files at once, and files end
    return joined([LakeWriter(stream, plan.lake_of_chunk(0), Choice(chosen, None, {}), None, memory).write_files()])


def without_locks(store: Store, *, waits: bool = False) -> AbstractContextManager[None]:
    """As those of object stores."""
    return nullcontext()


def parquet_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet*")}


@pytest.fixture(params=[True, False], ids=["renames", "object store"])
def moves(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(Store, "moves", request.param)
    return bool(request.param)


@pytest.mark.parametrize("format", FORMATS)
def test_an_attempt_that_fails_after_another_has_won(format: str, moves: bool, tmp_path: Path) -> None:
    lake, plan = opened(tmp_path, format)
    files = attempt(plan)
    before = parquet_files(tmp_path)
    with pytest.raises(SourceError):
        attempt(plan, fails=True)
    assert parquet_files(tmp_path) == before
    publish(lake, files, END)
    check(MESSAGES, tmp_path, "changes")


@pytest.mark.parametrize("format", FORMATS)
def test_an_attempt_that_fails_leaves_the_note_of_the_write(format: str, tmp_path: Path) -> None:
    """Else the next write would not look for what the driver leaves when it is killed."""
    lake, plan = opened(tmp_path, format)
    assert lake.store.has(BEGUN)
    with pytest.raises(SourceError):
        attempt(plan, fails=True)
    assert lake.store.has(BEGUN)
    attempt(plan)
    write(MESSAGES, tmp_path, format, "changes")  # by a driver that was started again
    check(MESSAGES, tmp_path, "changes")


def test_an_attempt_that_fails_while_the_driver_publishes(
    moves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files have their names then, and the manifest does not name them yet."""
    lake, plan = opened(tmp_path, "parquet")
    files = attempt(plan)
    commit = Lake.commit

    def late(lake: Lake, position: wf.CapturePosition) -> None:
        monkeypatch.setattr(Lake, "commit", commit)
        with pytest.raises(SourceError):
            attempt(plan, fails=True)
        lake.commit(position)

    monkeypatch.setattr(Lake, "commit", late)
    publish(lake, files, END)
    check(MESSAGES, tmp_path, "changes")


def test_two_attempts_that_succeed(moves: bool, tmp_path: Path) -> None:
    """Readers of the folder see the rows once, and the files of the other attempt do not stay."""
    lake, plan = opened(tmp_path, "parquet")
    files_of_other = [file.unfinished for table in attempt(plan) for file in table.files]
    assert all(map(lake.store.has, files_of_other))
    foreign = f"{files_of_other[0].rpartition('/')[0]}/.wireformat-0123abcd-wireformat-000007.parquet.part"
    lake.store.write(foreign, b"of another write")
    files = attempt(plan)
    publish(lake, files, END)
    check(MESSAGES, tmp_path, "changes")
    assert not any(map(lake.store.has, files_of_other))
    assert sum(len(table.files) for table in files) == len(parquet_files(tmp_path) - {foreign})
    assert lake.store.has(foreign)


@pytest.mark.parametrize("format", FORMATS)
def test_an_attempt_that_ends_after_the_commit(format: str, moves: bool, tmp_path: Path) -> None:
    lake, plan = opened(tmp_path, format)
    late = replace(plan, manifest=replace(plan.manifest, tables={}))  # as it was pickled
    publish(lake, attempt(plan), END)
    before = parquet_files(tmp_path)
    with pytest.raises(wf.LakeConflict, match="another process"):
        attempt(late)
    assert parquet_files(tmp_path) == before
    check(MESSAGES, tmp_path, "changes")


def test_current_rows_of_two_attempts(moves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that writes the tables as they stand commits them itself: the slower one must not touch the other's."""
    commit = Lake.commit

    def slow(lake: Lake, position: wf.CapturePosition) -> None:
        monkeypatch.setattr(Lake, "commit", commit)
        if not moves:
            write(MESSAGES, tmp_path, "parquet", "latest")
        lake.commit(position)

    monkeypatch.setattr(Lake, "commit", slow)
    if moves:
        write(MESSAGES, tmp_path, "parquet", "latest")
    else:
        monkeypatch.setattr(Store, "locked", without_locks)
        with pytest.raises(wf.LakeConflict, match="another process"):
            write(MESSAGES, tmp_path, "parquet", "latest")
    check(MESSAGES, tmp_path, "latest")


@pytest.mark.parametrize("format", FORMATS)
def test_a_task_that_is_retried_after_its_commit(format: str, tmp_path: Path) -> None:
    """It has nothing to do, even where current rows cannot be written a second time."""
    _, plan = opened(tmp_path, format, "latest")
    listed = capture_of(MESSAGES).tables()
    assert len(capture_of(MESSAGES).write_listed(plan, listed, None))
    before = files_of(tmp_path)
    assert not len(capture_of(MESSAGES).write_listed(plan, listed, None))
    assert files_of(tmp_path) == before
    check(MESSAGES, tmp_path, "latest")


def test_a_task_before_which_another_write_has_committed(tmp_path: Path) -> None:
    """That write is not taken for an earlier attempt: the messages of the task are not in the lake."""
    _, plan = opened(tmp_path, "delta", "latest")
    listed = capture_of(MESSAGES).tables()
    write(MESSAGES[:40], tmp_path, "delta", "latest")
    with pytest.raises(wf.LakeConflict, match="another process wrote to it"):
        capture_of(MESSAGES).write_listed(plan, listed, None)
    check(MESSAGES[:40], tmp_path, "latest")


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_write_while_another_one_is_under_way(
    format: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused, and leaves the files of the other one alone."""
    publish = LakeWriter._publish

    def late(writer: LakeWriter, position: wf.CapturePosition) -> None:
        with pytest.raises(wf.LakeConflict, match="another process is writing"):
            write(MESSAGES[:40], tmp_path, format, state)
        publish(writer, position)

    monkeypatch.setattr(LakeWriter, "_publish", late)
    write(MESSAGES, tmp_path, format, state)
    monkeypatch.undo()
    check(MESSAGES, tmp_path, state)
    write(MESSAGES, tmp_path, format, state)
    check(MESSAGES, tmp_path, state)


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_write_that_is_overtaken(format: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no locks: it does not replace the files of the other one, nor go on where those are gone."""
    publish = LakeWriter._publish

    def late(writer: LakeWriter, position: wf.CapturePosition) -> None:
        monkeypatch.setattr(LakeWriter, "_publish", publish)
        write(MESSAGES[:40], tmp_path, format, state)
        publish(writer, position)

    monkeypatch.setattr(Store, "locked", without_locks)
    monkeypatch.setattr(LakeWriter, "_publish", late)
    with pytest.raises(wf.LakeConflict, match="another process"):
        write(MESSAGES, tmp_path, format, state)
    check(MESSAGES[:40], tmp_path, state)
    write(MESSAGES, tmp_path, format, state)
    check(MESSAGES, tmp_path, state)


def test_a_write_that_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(wf.OptionError, match="no column"):
        capture_of(MESSAGES).write(tmp_path / "lake", partition_by="other")
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_write_that_is_overtaken_before_it_begins(
    format: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither removes the files of the other as left ones: only the number of writes tells that they are not alone."""
    begin = Lake.begin

    def late(lake: Lake) -> None:
        monkeypatch.setattr(Lake, "begin", begin)
        write(MESSAGES[:40], tmp_path, format, state)
        lake.begin()

    monkeypatch.setattr(Store, "locked", without_locks)
    monkeypatch.setattr(Lake, "begin", late)
    with pytest.raises(wf.LakeConflict, match="another process wrote to it"):
        write(MESSAGES, tmp_path, format, state, threads=1)
    check(MESSAGES[:40], tmp_path, state)
    write(MESSAGES, tmp_path, format, state)
    check(MESSAGES, tmp_path, state)


def test_a_write_that_is_overtaken_at_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one has replaced its files, whose names are the same, and they stay."""
    commit = Lake.commit

    def late(lake: Lake, position: wf.CapturePosition) -> None:
        monkeypatch.setattr(Lake, "commit", commit)
        write(MESSAGES[:40], tmp_path, "parquet", "changes")
        lake.commit(position)

    monkeypatch.setattr(Store, "locked", without_locks)
    monkeypatch.setattr(Lake, "commit", late)
    with pytest.raises(wf.LakeConflict, match="another process wrote to it"):
        write(MESSAGES, tmp_path, "parquet", "changes")
    check(MESSAGES[:40], tmp_path, "changes")


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_files_of_another_write_with_the_same_number(
    format: str, is_committed: bool, moves: bool, tmp_path: Path
) -> None:
    """They are not taken for what attempts of this one have left, where there are no locks."""
    lake, _ = opened(tmp_path, format)
    other, plan = opened(tmp_path, format, writer="1e")
    files = attempt(plan)
    if is_committed:
        publish(other, files, END)
    named = [path for path in lake.other_files() if ".wireformat-" not in path]
    assert parquet_files(tmp_path)
    assert named == []


def test_a_write_that_fails_while_another_one_is_committed(
    moves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are no locks, and the files of both have the same names: those of the other one stay."""
    lake, plan = opened(tmp_path, "parquet")
    files = attempt(plan)
    publish_files = chunks.publish_files

    def late(*given: Any) -> None:
        monkeypatch.setattr(chunks, "publish_files", publish_files)
        other, plan = opened(tmp_path, "parquet", writer="1e")
        publish(other, attempt(plan), END)
        raise OSError("the disk is full")

    monkeypatch.setattr(chunks, "publish_files", late)
    with pytest.raises((OSError, wf.LakeConflict)):
        publish(lake, files, END)
    check(MESSAGES, tmp_path, "changes")


def test_a_task_that_ends_after_its_driver_was_killed(moves: bool, tmp_path: Path) -> None:
    """Its files do not stay, whose rows the next write has, too."""
    _, plan = opened(tmp_path, "parquet")
    lake, own = opened(tmp_path, "parquet", writer="1e")
    attempt(plan)
    files = attempt(own)
    publish(lake, files, END)
    check(MESSAGES, tmp_path, "changes")
    assert parquet_files(tmp_path) == {file.path for table in files for file in table.files}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A lake that is written as in an object store: there are no locks, and files have their names at once."""
    monkeypatch.setattr(store_module, "is_of_this_machine", lambda folder: False)
    (tmp_path / "lake").mkdir()
    return {"folder": (tmp_path / "lake").as_uri(), "storage_options": {"allow_http": "true"}}


def test_another_write_begins_in_an_object_store(store: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the files of the first one for left ones, and may remove them at any time: the first one ends."""
    commit = Lake.commit

    def late(lake: Lake, position: wf.CapturePosition) -> None:
        monkeypatch.setattr(Lake, "commit", commit)
        other = Lake(lake.store, replace(lake.manifest), lake.stream, "0e")
        other.clean()
        other.begin()
        lake.commit(position)

    monkeypatch.setattr(Lake, "commit", late)
    with pytest.raises(wf.LakeConflict, match=r"to have 0 writes, .* got the beginning of another one"):
        capture_of(MESSAGES[:40]).write(**store)
    with pytest.raises(wf.OptionError, match="expected a lake"):
        wf.lake.tables(**store)
    lake = Path(store["folder"].removeprefix("file://"))
    assert (lake / ".wireformat-begun").read_bytes() == b"0e"  # what the other one may leave will be looked for
    capture_of(MESSAGES).write(**store)
    check(MESSAGES, lake, "changes")


@pytest.mark.parametrize("is_first", [True, False])
def test_two_manifests_in_an_object_store(
    is_first: bool, store: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other write puts its manifest directly before the one of this write, or after it; this write raises then."""
    write_manifest = lake_module.write_manifest

    def late(there: Store, manifest: Manifest) -> None:
        monkeypatch.setattr(lake_module, "write_manifest", write_manifest)
        if is_first:
            capture_of(MESSAGES[:40]).write(**store)
            write_manifest(there, manifest)
        else:
            write_manifest(there, manifest)
            write_manifest(there, replace(manifest, writer="0e"))

    monkeypatch.setattr(lake_module, "write_manifest", late)
    expected = "got a part of them: .* to a new lake" if is_first else "got the manifest of another one"
    with pytest.raises(wf.LakeConflict, match=expected):
        capture_of(MESSAGES).write(**store)
