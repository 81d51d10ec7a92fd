"""A lake that this user may not write to, and what is in the way of one: an error with advice, and nothing is left."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.lake.parquet import ParquetFile
from wireformat.lake.rejects import SCHEMA
from wireformat.lake.stored.store import Store

from .reading import read_all
from .writing import KEYS, MESSAGES, capture_of, check

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")

NOBODY = 65534
KINDS = [("parquet", "changes"), ("delta", "changes"), ("delta", "latest")]
ORDERS = Path("public", "orders")


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that other users reach, unlike those of pytest."""
    base = Path(tempfile.mkdtemp())
    base.chmod(0o755)
    yield base
    for folder in [base, *base.rglob("*")]:
        if folder.is_dir():
            folder.chmod(0o755)
    shutil.rmtree(base)


@contextmanager
def another_user() -> Iterator[None]:
    """The superuser may write everywhere."""
    if os.geteuid():
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def write(messages: list[bytes], lake: Path, format: str, state: str) -> None:
    keys = {"keys": KEYS} if state == "latest" else {}
    capture_of(messages).write(lake, format=format, state=state, **keys)


def given_lake(base: Path, format: str, state: str) -> Path:
    """A lake of the other user. What is loaded and compiled late is there afterwards."""
    for name in ("first", "lake"):
        write(MESSAGES[:20], base / name, format, state)
    write(MESSAGES, base / "first", format, state)
    shutil.rmtree(base / "first")
    if not os.geteuid():
        for path in [base / "lake", *(base / "lake").rglob("*")]:
            os.chown(path, NOBODY, NOBODY)
    return base / "lake"


def closed(path: Path) -> None:
    path.chmod(0o555)
    if not os.geteuid():
        os.chown(path, 0, 0)


def names(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_new_lake_in_a_folder_that_is_not_writable(format: str, state: str, base: Path) -> None:
    given_lake(base, format, state)
    base.chmod(0o555)
    before = names(base)
    with another_user(), pytest.raises(wf.LakeError, match=r"may read and write.* for .*/deep/new; change its owner"):
        write(MESSAGES, base / "deep" / "new", format, state)
    base.chmod(0o700)
    if not os.geteuid():
        with another_user(), pytest.raises(wf.LakeError, match="may read and write"):
            write(MESSAGES, base / "new", format, state)
    assert names(base) == before


@pytest.mark.parametrize(("format", "state"), KINDS)
@pytest.mark.parametrize("where", [Path(), ORDERS, ORDERS / "_delta_log"])
def test_a_folder_of_a_lake_that_is_not_writable(format: str, state: str, where: Path, base: Path) -> None:
    lake = given_lake(base, format, state)
    folder = lake / where
    if not folder.exists():
        pytest.skip("a folder of Delta tables")
    mode = folder.stat()
    closed(folder)
    rows = read_all(lake)
    with another_user(), pytest.raises(wf.LakeError) as error:
        write(MESSAGES, lake, format, state)
    assert str(lake / where) in str(error.value)
    assert "Permission denied" in str(error.value)
    assert "change its owner" in str(error.value) or "remove the cause" in str(error.value)
    assert "\x1b" not in str(error.value)
    if format == "parquet" or where == Path():  # each Delta table is as it was, or as it should be
        assert read_all(lake) == rows
    folder.chmod(mode.st_mode)
    os.chown(folder, mode.st_uid, mode.st_gid)
    with another_user():
        write(MESSAGES, lake, format, state)
    check(MESSAGES, lake, state)


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_files_that_are_read_only(format: str, state: str, base: Path) -> None:
    """They are replaced or stay: only their folders must be writable."""
    lake = given_lake(base, format, state)
    for path in lake.rglob("*"):
        if path.is_file():
            path.chmod(0o444)
    with another_user():
        write(MESSAGES, lake, format, state)
    check(MESSAGES, lake, state)


def a_file_for_the_schema(lake: Path) -> None:
    lake.mkdir()
    (lake / "public").write_text("")


def a_file_for_a_table(lake: Path) -> None:
    (lake / "public").mkdir(parents=True)
    (lake / "public" / "lines").write_text("")


def a_folder_for_the_manifest(lake: Path) -> None:
    (lake / "_wireformat.json").mkdir(parents=True)


@pytest.mark.parametrize(("format", "state"), KINDS)
@pytest.mark.parametrize("prepare", [a_file_for_the_schema, a_file_for_a_table, a_folder_for_the_manifest])
def test_what_is_in_the_way(prepare: Callable[[Path], None], format: str, state: str, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    prepare(lake)
    before = names(lake)
    with pytest.raises(wf.LakeError, match=r"move away what is in the way|Not a directory"):
        write(MESSAGES, lake, format, state)
    assert names(lake) == before


def test_rejects_in_a_folder_that_is_not_writable(base: Path) -> None:
    given_lake(base, "parquet", "changes")
    closed_folder = base / "closed"
    closed_folder.mkdir()
    closed(closed_folder)
    base.chmod(0o777)
    capture = capture_of(MESSAGES, mode="PERMISSIVE")
    with another_user(), pytest.raises(wf.LakeError, match=r"may read and write.*closed; change its owner"):
        capture.write(base / "another", rejects=closed_folder / "bad.parquet")
    assert not (base / "another").exists()


def test_folders_that_two_threads_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one begins when the folder of both is there, and ends first."""
    store, mkdir = Store.of(tmp_path / "lake", None, None), Path.mkdir

    def make(path: Path, *arguments: Any, **options: Any) -> None:
        mkdir(path, *arguments, **options)
        if path.name == "orders":
            store.make_folder_of("public/lines/file")

    monkeypatch.setattr(Path, "mkdir", make)
    store.make_folder_of("public/orders/file")
    assert [*(tmp_path / "lake" / "public").iterdir()]
    store.remove_empty()
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_another_write_removes(tmp_path: Path) -> None:
    """The other one made the folder of both, writes nothing, and ends before this one writes its first bytes."""
    one, other = (Store.of(tmp_path / "lake", None, None) for _ in range(2))
    other.make_folder_of("rejects/file")
    file = ParquetFile(one, "rejects/file", SCHEMA, {})
    other.remove_empty()
    assert not (tmp_path / "lake").exists()
    rows = pa.RecordBatch.from_pylist([{"message": 1}], SCHEMA)
    file.write(rows)
    file.write(rows)
    written = file.close({})
    assert pq.read_table(tmp_path / "lake" / written.unfinished).num_rows == 2


def test_a_file_that_disappears_is_not_begun_in_its_middle(tmp_path: Path) -> None:
    file = ParquetFile(Store.of(tmp_path / "lake", None, None), "rejects/file", SCHEMA, {})
    rows = pa.RecordBatch.from_pylist([{"message": 1}], SCHEMA)
    file.write(rows)
    for path in (tmp_path / "lake" / "rejects").iterdir():
        path.unlink()
    with pytest.raises(wf.LakeConflict, match=r"has removed .* before it was complete"):
        file.write(rows)
    file.discard()


def test_a_lock_of_a_folder_that_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that waits until another one ends, which leaves nothing, keeps out the next one."""
    fcntl = pytest.importorskip("fcntl")
    first, flock = Store.of(tmp_path / "lake", None, None).locked(), fcntl.flock

    def late(file: int, lock: int) -> None:
        monkeypatch.undo()
        first.__exit__(None, None, None)
        flock(file, lock)

    first.__enter__()
    monkeypatch.setattr(fcntl, "flock", late)
    second, third = (Store.of(tmp_path / "lake", None, None) for _ in range(2))
    with second.locked(waits=True), pytest.raises(wf.LakeConflict), third.locked():
        pass
    assert not (tmp_path / "lake").exists()
