"""A lake in an object store: a server on this machine that speaks S3."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import wireformat as wf

from .histories import TABLES, messages_of, transactions
from .reading import in_order, values

pytest.importorskip("moto")
pytest.importorskip("flask_cors")

MESSAGES = messages_of([*transactions(60)])

KEY, SECRET, REGION = "key", "secret", "us-east-1"


SERVER = """
import sys
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(*server.get_host_and_port(), sep=":", flush=True)
sys.stdin.read()
server.stop()
"""
"""The system chooses a port that is free, and the program prints it; it ends with its input."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Address and port of the server. It is a process of its own, for deltalake waits for it with the GIL."""
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        address = server.stdout.readline().decode().strip()
        assert address, "the server has not started"
        yield address


@pytest.fixture
def filesystem(endpoint: str) -> pafs.S3FileSystem:
    """A file system with an empty bucket."""
    found = pafs.S3FileSystem(
        endpoint_override=endpoint,
        scheme="http",
        access_key=KEY,
        secret_key=SECRET,
        region=REGION,
        allow_bucket_creation=True,
    )
    found.create_dir("bucket")
    found.delete_dir_contents("bucket")
    return found


@pytest.fixture
def storage_options(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": f"http://{endpoint}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
    }


def capture_of(messages: list[bytes], **options: Any) -> wf.Capture:
    return wf.Capture(messages, "gaussdb-binary", **options)


def check_rows(rows: pa.Table, table: str) -> None:
    assert values(in_order(rows)) == values(capture_of(MESSAGES).typed(f"public.{table}").read_all())


def test_a_file_system_of_pyarrow(filesystem: pafs.S3FileSystem) -> None:
    given = {"filesystem": filesystem}
    capture_of(MESSAGES[:30]).write("bucket/lake", **given)
    after = wf.lake.position("bucket/lake", **given)
    capture_of(MESSAGES[30:], after=after).write("bucket/lake", **given)
    assert sum(capture_of(MESSAGES).write("bucket/lake", **given)["rows"].to_pylist()) == 0
    listed = wf.lake.tables("bucket/lake", **given).to_pylist()
    assert {row["table_name"] for row in listed} == {*TABLES}
    for row in listed:
        parts = [pq.read_table(file, filesystem=filesystem) for file in row["files"]]
        check_rows(pa.concat_tables(parts, promote_options="default"), row["table_name"])
    there = filesystem.get_file_info(pafs.FileSelector("bucket/lake", recursive=True))
    files = {file.path for file in there if file.type == pafs.FileType.File}
    # such a store shows no file that is not finished, and the note that a write has begun is gone
    assert files == {"bucket/lake/_wireformat.json", *(file for row in listed for file in row["files"])}


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_a_bucket_that_is_not_there(format: str, storage_options: dict[str, str]) -> None:
    """The store's own error has several lines, with colours and a document of XML."""
    with pytest.raises(
        wf.LakeError, match=r"^expected an object store .* s3://missing/lake, got .*404 Not Found'; [^<]*$"
    ):
        capture_of(MESSAGES).write("s3://missing/lake", format=format, storage_options=storage_options)


def test_a_uri_beside_a_file_system() -> None:
    with pytest.raises(
        wf.OptionError, match="option folder: expected a path in the filesystem, got the URI s3://bucket/lake"
    ):
        capture_of(MESSAGES).write("s3://bucket/lake", filesystem=pafs.LocalFileSystem())


@pytest.mark.slow
@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_storage_options(format: str, filesystem: pafs.S3FileSystem, storage_options: dict[str, str]) -> None:
    given: dict[str, Any] = {"storage_options": storage_options}
    for messages in (MESSAGES[:30], MESSAGES):
        capture_of(messages).write("s3://bucket/lake", format=format, **given)
    assert sum(capture_of(MESSAGES).write("s3://bucket/lake", format=format, **given)["rows"].to_pylist()) == 0
    for row in wf.lake.tables("s3://bucket/lake", **given).to_pylist():
        if format == "delta":
            found = deltalake.DeltaTable(row["folder"], storage_options=storage_options)
            check_rows(found.to_pyarrow_table(), row["table_name"])
        else:
            files = [file.removeprefix("s3://") for file in row["files"]]
            parts = [pq.read_table(file, filesystem=filesystem) for file in files]
            check_rows(pa.concat_tables(parts, promote_options="default"), row["table_name"])
