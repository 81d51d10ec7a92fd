"""The folder of rejects, without Spark: other attempts, other lakes, and writes that go on."""

from __future__ import annotations

import pickle
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from spark_udfs.chunks.groups import GroupMessages
from spark_udfs.chunks.lakes import StreamLakes, _absolute
from spark_udfs.chunks.rejects import ChunkRejects, RejectsFile, RejectsFolder
from spark_udfs.chunks.writing import WrittenChunk
from wireformat.lake.options import LakeOptions
from wireformat.lake.stored.store import Store

FORMAT = "pgoutput"
END = wf.CapturePosition(FORMAT)


def options_of(**given: Any) -> LakeOptions:
    others: dict[str, Any] = dict.fromkeys(
        ("tables", "partition_by", "keys", "schemas", "rejects", "filesystem", "storage_options")
    )
    return LakeOptions.check(**{**others, **given}, format="parquet", state="changes", mode="PERMISSIVE")


def order(*, nullable: bool = True, name: str = "offset") -> pa.Schema:
    return pa.schema([pa.field(name, pa.int64(), nullable=nullable)])


def folder_of(path: Path, *, lake: str = "a", number: int = 1, nullable: bool = True) -> RejectsFolder:
    after = END if number > 1 else None
    return RejectsFolder(str(path), lake, options_of(), number, "0f", after, order(nullable=nullable))


def filled(folder: RejectsFolder, messages: list[bytes]) -> ChunkRejects:
    """What took the records of the first chunk that cannot be read. The offsets of messages begin at 0."""
    offsets = pa.RecordBatch.from_arrays([pa.array(range(len(messages)), pa.int64())], schema=folder.fields)
    rejects = folder.of_chunk(0, GroupMessages.known(offsets, [], folder.fields.names))
    columns = ["message", "record", "kind", "error", "raw"]
    changes = wf.arrow.changes(messages, FORMAT, mode="PERMISSIVE", columns=columns)
    for _ in rejects.without_unread(changes.combine_chunks().to_batches()):
        pass
    return rejects


def write(folder: RejectsFolder, messages: list[bytes]) -> RejectsFile:
    file = filled(folder, messages).finish()
    folder.publish([file])
    return file


def raw(path: Path) -> list[bytes]:
    return sorted(value for file in path.glob("*.parquet") for value in pq.read_table(file)["raw"].to_pylist())


@pytest.mark.parametrize("nullable", [True, False])
def test_a_write_that_goes_on(nullable: bool, tmp_path: Path) -> None:
    """Records that are there are left out, also if the columns order_by are never null."""
    write(folder_of(tmp_path, nullable=nullable), [b"I\0", b"~1"])
    again = write(folder_of(tmp_path, number=2, nullable=nullable), [b"I\0", b"~1", b"~2"])
    assert again.unread == 1
    assert raw(tmp_path) == [b"I\0", b"~1", b"~2"]


def test_two_lakes(tmp_path: Path) -> None:
    """Of two streams, whose offsets are the same; one publishes while the other one writes."""
    write(folder_of(tmp_path), [b"~a1"])
    later = folder_of(tmp_path, number=2)
    waiting = filled(later, [b"~a1", b"~a2"]).finish()
    write(folder_of(tmp_path, lake="b"), [b"~b1"])
    write(folder_of(tmp_path, lake="b", number=2), [b"~b1", b"~b2"])
    later.publish([waiting])
    assert raw(tmp_path) == [b"~a1", b"~a2", b"~b1", b"~b2"]


@pytest.mark.parametrize("moves", [True, False])
def test_an_attempt_that_fails(moves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "moves", moves)
    folder = folder_of(tmp_path)
    won = filled(folder, [b"~1", b"~2"]).finish()
    filled(folder, [b"~1"]).discard()
    folder.publish([won])
    assert raw(tmp_path) == [b"~1", b"~2"]


@pytest.mark.parametrize("moves", [True, False])
def test_a_job_that_fails(moves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rejects of its tasks that have succeeded do not stay either, but those of another write do."""
    monkeypatch.setattr(Store, "moves", moves)
    lakes = lakes_of(tmp_path / "lake", order(), rejects=str(tmp_path / "rejects"))
    (folder,) = lakes._rejects.values()
    write(folder_of(tmp_path / "rejects"), [b"~1"])
    filled(folder, [b"~2"]).finish()
    with monkeypatch.context() as patched:
        patched.setattr(Store, "files", Mock(side_effect=OSError("no network")))
        lakes.discard()  # the error of the job is the one to raise
    lakes.discard()
    assert raw(tmp_path / "rejects") == [b"~1"]


def test_a_job_that_fails_beside_another_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no locks: the files that the other one has published, with the same number, stay."""
    monkeypatch.setattr(Store, "locked", lambda store, **given: nullcontext())
    lakes = lakes_of(tmp_path, order())
    wf.Capture([*wf.encode(wf.testing.stream(1, 9, seed=1, format=FORMAT), FORMAT)], FORMAT).write(tmp_path)
    before = {*tmp_path.rglob("*.parquet*")}
    assert before
    lakes.discard()
    assert {*tmp_path.rglob("*.parquet*")} == before


@pytest.mark.parametrize("moves", [True, False])
def test_rejects_of_a_write_that_is_overtaken(moves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not replace those of the other one."""
    monkeypatch.setattr(Store, "moves", moves)
    monkeypatch.setattr(Store, "locked", lambda store, **given: nullcontext())
    lakes = lakes_of(tmp_path / "lake", order(), rejects=str(tmp_path / "rejects"))
    ((key, folder),) = lakes._rejects.items()
    write(replace(folder, writer="1e"), [b"~1"])
    wf.Capture([], FORMAT, mode="PERMISSIVE").write(tmp_path / "lake")
    written = WrittenChunk([], {}, filled(folder, [b"~2"]).finish())
    light = cast(Any, SimpleNamespace(check_whole=lambda parts: None))
    with pytest.raises(wf.LakeConflict):
        lakes.publish({key: {0: written}}, light, {})
    assert raw(tmp_path / "rejects") == [b"~1"]


@pytest.mark.parametrize("moves", [True, False])
def test_a_write_that_is_repeated(moves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It replaces what the first one has published, also if a task publishes for itself."""
    monkeypatch.setattr(Store, "moves", moves)
    write(folder_of(tmp_path), [b"~1"])
    rejects = filled(folder_of(tmp_path), [b"~1"])
    rejects.close()
    rejects.discard()  # as the tables could not be published
    assert raw(tmp_path) == [b"~1"]


def lakes_of(folder: Any, fields: pa.Schema, **options: Any) -> StreamLakes:
    return StreamLakes(ExitStack(), folder, options_of(**options), FORMAT, [()], {}, "PERMISSIVE", fields)


@pytest.mark.parametrize("name", ["commit_lsn", "Ordinal", "raw"])
def test_columns_that_rejects_have_too(name: str, tmp_path: Path) -> None:
    with pytest.raises(wf.OptionError, match="option order_by: rejects have a column"):
        lakes_of(tmp_path / "lake", order(name=name), rejects=str(tmp_path / "rejects"))
    assert not [*tmp_path.iterdir()]
    lakes_of(tmp_path / "lake", order(name=name))
    lakes_of(tmp_path / "lake", order(name="message"), rejects=str(tmp_path / "rejects"))


def test_a_folder_is_that_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have other working folders."""
    (tmp_path / "driver").mkdir()
    monkeypatch.chdir(tmp_path / "driver")
    listed = pa.table({"table_schema": pa.array([], pa.string()), "table_name": pa.array([], pa.string())})
    light = cast(Any, SimpleNamespace(listed=listed, listed_of=lambda *_: listed, versions_before=lambda *_: {}))
    (write,) = lakes_of("lake", order(), rejects="rejects").writes(light, None).values()
    sent = pickle.loads(pickle.dumps(write))
    monkeypatch.chdir(tmp_path)
    assert sent.lake.lake_of_chunk(0).store.path("t") == str(tmp_path / "driver" / "lake" / "t")
    assert sent.rejects.folder == str(tmp_path / "driver" / "rejects")


@pytest.mark.parametrize("given", ["memory://lake", "s3://bucket/lake"])
def test_a_uri_stays(given: str) -> None:
    assert _absolute(given, options_of()) == given
    assert _absolute("bucket/lake", options_of(filesystem=pafs.LocalFileSystem())) == "bucket/lake"
