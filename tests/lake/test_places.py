"""Where a lake can be, how often its messages are read, and with how much memory."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.lake.stored import store as store_module
from wireformat.lake.stored.store import Store

from .histories import TABLES
from .reading import values
from .writing import KEYS, KINDS, MESSAGES, capture_of, check, expected, write


def test_a_file_system_in_memory() -> None:
    filesystem = pafs._MockFileSystem()
    given = {"filesystem": filesystem}
    capture_of(MESSAGES[:30]).write("bucket/lake", **given)
    capture_of(MESSAGES[30:], after=wf.lake.position("bucket/lake", **given)).write("bucket/lake", **given)
    tables = wf.lake.tables("bucket/lake", **given).to_pylist()
    assert {row["table_name"] for row in tables} == {*TABLES}
    for row in tables:
        parts = [pq.read_table(file, filesystem=filesystem) for file in row["files"]]
        assert values(pa.concat_tables(parts)) == expected(MESSAGES, row["table_name"], "changes")


class OfFsspec:
    """A file system, as fsspec has them."""

    protocol: Any = None

    def isfile(self, path: str) -> bool:
        return Path(path).is_file()

    def _strip_protocol(self, path: str) -> str:
        return str(Path(path.removeprefix("file://")).absolute())


LocalOfFsspec = type("LocalFileSystem", (OfFsspec,), {"__module__": "fsspec.implementations.local"})


def test_local_folders_behind_other_file_systems(tmp_path: Path) -> None:
    """Writes are locked there, and wait for the disk."""
    below = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    wrapped = pafs.PyFileSystem(pafs.FSSpecHandler(LocalOfFsspec()))
    for folder, filesystem in (
        ("lake", below),
        (f"{tmp_path}/lake", LocalOfFsspec()),
        (f"{tmp_path}/lake", wrapped),
        ("/lake", pafs.SubTreeFileSystem(str(tmp_path), wrapped)),
        ("lake", pafs.SubTreeFileSystem(f"/{tmp_path.name}", pafs.SubTreeFileSystem(str(tmp_path.parent), wrapped))),
    ):
        store = Store.of(folder, filesystem, None, durable=True)
        assert store.is_durable
        assert store.identity == str(tmp_path / "lake")
    with pytest.raises(wf.OptionError, match="expected a path in the filesystem, got the URI file:///lake"):
        Store.of("file:///lake", below, None)
    capture_of(MESSAGES).write("lake", filesystem=below)
    check(MESSAGES, tmp_path / "lake", "changes")


@pytest.mark.parametrize("base", [pafs.LocalFileSystem(), pafs._MockFileSystem()], ids=["local", "memory"])
def test_paths_below_other_file_systems(base: pafs.FileSystem, tmp_path: Path) -> None:
    """Those that are returned are paths in the file system that was passed."""
    base.create_dir(f"{tmp_path}/a/b")
    one = pafs.SubTreeFileSystem(f"{tmp_path}/a", base)
    for number, filesystem in enumerate((one, pafs.SubTreeFileSystem("b", one))):
        for folder in (f"lake{number}", f"/lakes/{number}/", "/"):
            written = capture_of(MESSAGES).write(folder, filesystem=filesystem)
            listed = wf.lake.tables(folder, filesystem=filesystem)
            assert written["folder"].to_pylist() == listed["folder"].to_pylist()
            begin = "public/" if folder == "/" else f"{folder.rstrip('/')}/public/"
            for row in listed.to_pylist():
                assert row["folder"].startswith(begin)
                rows = pa.concat_tables(pq.read_table(file, filesystem=filesystem) for file in row["files"])
                assert values(rows) == expected(MESSAGES, row["table_name"], "changes")
    assert len({Store.of("lake", filesystem, None).identity for filesystem in (one, base)}) == 2


def test_more_lakes_than_a_process_may_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a capture on Spark has many streams: each keeps the folder of its lake open."""
    error = OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(tmp_path))
    monkeypatch.setattr(os, "open", Mock(side_effect=error))
    with pytest.raises(wf.LakeError, match=r"a file more for each lake .* got 'Too many open files' .*; raise the"):
        Store.of(tmp_path, None, None).locked().__enter__()


@pytest.mark.parametrize("protocol", ["filecache", ("file", "local"), None])
def test_file_systems_that_are_more_than_local_folders(protocol: Any, tmp_path: Path) -> None:
    """A cache of other files, and a class that is made from that of local files."""
    filesystem = type("Other", (LocalOfFsspec,), {"protocol": protocol, "__module__": "other"})()
    assert not Store.of(tmp_path / "lake", filesystem, None).is_local


@pytest.mark.parametrize(("format", "state"), KINDS)
def test_the_file_system_of_deltalake(format: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As object stores are written to: files have their names at once."""
    monkeypatch.setattr(store_module, "is_of_this_machine", lambda folder: False)
    given: dict[str, Any] = {"storage_options": {"allow_http": "true"}}
    keys = {"keys": KEYS} if state == "latest" else {}
    (tmp_path / "lake").mkdir()
    uri = (tmp_path / "lake").as_uri()
    for messages in (MESSAGES[:30], MESSAGES):
        capture_of(messages).write(uri, format=format, state=state, **given, **keys)
    assert wf.lake.position(uri, **given) == wf.lake.position(tmp_path / "lake")
    check(MESSAGES, tmp_path / "lake", state)


@pytest.mark.parametrize("is_uri", [True, False])
@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_new_folder_with_storage_options(format: str, state: str, is_uri: bool, tmp_path: Path) -> None:
    """A folder of this machine is made, as without them, and only one write at a time may be under way."""
    folder = tmp_path / "new" / "a lake"
    place = folder.as_uri() if is_uri else str(folder)
    given: dict[str, Any] = {"storage_options": {"allow_http": "true"}}
    with pytest.raises(wf.OptionError, match="option folder: expected a lake"):
        wf.lake.position(place, **given)
    assert [*tmp_path.iterdir()] == []
    keys = {"keys": KEYS} if state == "latest" else {}
    for messages in (MESSAGES[:30], MESSAGES):
        capture_of(messages).write(place, format=format, state=state, **given, **keys)
    assert wf.lake.position(place, **given) == wf.lake.position(folder)
    check(MESSAGES, folder, state)
    with Store.of(folder, None, None).locked(), pytest.raises(wf.LakeConflict):
        capture_of(MESSAGES).write(place, format=format, state=state, **given, **keys)


def test_little_memory(tmp_path: Path) -> None:
    """Then row groups are small, and current rows wait in files."""
    for format, state in [*KINDS, ("parquet", "latest")]:
        write(MESSAGES, tmp_path / format / state, format, state, memory_limit=1000)
        check(MESSAGES, tmp_path / format / state, state)


@pytest.mark.parametrize(
    ("memory", "state", "readings"),
    [(1 << 28, "changes", 1), (1000, "changes", 1), (1 << 28, "latest", 1), (1000, "latest", 2)],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_how_often_messages_are_read(memory: int, state: str, readings: int, threads: int, tmp_path: Path) -> None:
    """Once; rows that do not fit into memory need the list of tables first, if they cannot be taken back."""
    pq.write_table(pa.table({"payload": MESSAGES}), tmp_path / "messages.parquet")
    read_bytes: list[int] = []
    path, done = tmp_path / "messages.parquet", read_bytes.append
    capture = wf.Capture(path, "gaussdb-binary", memory_limit=memory, threads=threads, progress=done)
    capture.write(tmp_path / "lake", state=state, **({"keys": KEYS} if state == "latest" else {}))
    check(MESSAGES, tmp_path / "lake", state)
    size = path.stat().st_size
    assert sum(read_bytes) == pytest.approx(readings * size, rel=0.01)
    assert capture.tables().equals(capture_of(MESSAGES).tables())
    assert sum(read_bytes) == pytest.approx(readings * size, rel=0.01)


def test_a_reader_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wf.OptionError, match="can be read only once"):
        wf.Capture(iter(MESSAGES), "gaussdb-binary").write(tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_a_write_that_is_refused_leaves_no_folders(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(wf.OptionError, match="option keys"):
        capture_of(MESSAGES).write(tmp_path / "there" / "a" / "b", state="latest", keys={"public.missing": ["id"]})
    assert not [*tmp_path.glob("there/*")]
    with pytest.raises(wf.OptionError, match="option keys"):
        capture_of(MESSAGES).write(tmp_path / "there", state="latest", keys={"public.missing": ["id"]})
    assert (tmp_path / "there").is_dir()
