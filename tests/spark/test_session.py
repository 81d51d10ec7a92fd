"""The local session, and what the package may touch: no Java is a clear error, and Spark Connect stays possible."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import spark_udfs
from spark_udfs import session
from spark_udfs.session import (
    ALLOCATOR,
    MEMORY_POOL,
    SOCKETS,
    SOCKETS_FOLDER,
    SOCKETS_VARIABLE,
    JavaMissing,
    RemoteProcess,
    check_java,
    local_session,
    memory_pool,
    unix_sockets,
)

PACKAGE = Path(spark_udfs.__file__).parent

NOT_IN_CONNECT = {"sparkContext", "_sc", "_jvm", "_jsc", "_jdf", "_jc", "_jsparkSession", "_jseq", "rdd"}


IF_THERE = {"chunks/frame_files.py": {"_jdf", "sparkContext"}}
"""What is used only in a session that has it."""

FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES)
def test_nothing_that_spark_connect_does_not_have(file: str) -> None:
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & NOT_IN_CONNECT
    assert used == IF_THERE.get(file, set())


def test_import_loads_no_compiler_and_no_client_of_spark_connect() -> None:
    code = "import spark_udfs, sys; print(*{'grpc', 'numba', 'pyspark.sql', 'zstandard'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["pyspark.sql"]


@pytest.mark.spark
def test_workers_run_this_interpreter(spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    executable = udf(lambda _: sys.executable, "string")
    assert spark.range(1).select(executable("id")).collect() == [(sys.executable,)]


@pytest.mark.spark
@pytest.mark.skipif(ALLOCATOR not in pa.supported_memory_backends(), reason="Arrow was built without it")
def test_workers_use_the_allocator_that_gives_memory_back(spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    pool = udf(lambda _: pa.default_memory_pool().backend_name, "string")
    assert spark.range(1).select(pool("id")).collect() == [(ALLOCATOR,)]


class TestMemoryPool:
    def test_the_user_decides(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(MEMORY_POOL, "system")
        assert memory_pool() == {}

    def test_only_what_arrow_has(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(MEMORY_POOL, raising=False)
        monkeypatch.setattr(pa, "supported_memory_backends", lambda: ["system"])
        assert memory_pool() == {}


@pytest.mark.spark
def test_again_gives_the_same_session(spark: SparkSession, set_conf: Callable[[str, Any], None]) -> None:
    """It has the settings that the user has made, and those of the call."""
    before = [spark.conf.get(name) for name in ("spark.master", "spark.app.name")]
    set_conf("spark.sql.shuffle.partitions", 64)
    set_conf("spark.sql.adaptive.enabled", "true")
    assert local_session(3, settings={"spark.sql.adaptive.enabled": "false"}) is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "64"
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"
    assert [spark.conf.get(name) for name in ("spark.master", "spark.app.name")] == before


@pytest.mark.spark
def test_what_is_set(spark: SparkSession) -> None:
    assert spark.conf.get("spark.master") == "local[2]"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"


def test_none_beside_spark_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address may hold a token, so the error does not show it. A session of Connect is in test_connect.py."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://server/;token=secret")
    with pytest.raises(RemoteProcess, match="does not use Spark Connect, but SPARK_REMOTE is set") as caught:
        local_session()
    assert "secret" not in str(caught.value)


@pytest.mark.spark
def test_data_pass_through_unix_sockets(spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    mode = udf(lambda _: os.environ["PYTHON_UNIX_DOMAIN_ENABLED"].lower(), "string")
    assert spark.range(1).select(mode("id")).collect() == [("true",)]


@pytest.mark.spark
@pytest.mark.slow
def test_killed_workers_are_replaced() -> None:
    """A session leaves no socket behind. The folder is not pytest's, whose paths are too long for sockets."""
    env = {name: value for name, value in os.environ.items() if name != SOCKETS_VARIABLE}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.killed_workers"],
            env={**env, "TMPDIR": folder},
            cwd=PACKAGE.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        left = list(Path(folder).glob("spark-*"))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["true", "same"]
    assert left == []


class TestUnixSockets:
    @pytest.fixture(autouse=True)
    def undecided(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(SOCKETS_VARIABLE, raising=False)

    def test_in_a_folder_of_this_user(self) -> None:
        settings = unix_sockets()
        assert settings[SOCKETS] == "true"
        assert Path(str(settings[SOCKETS_FOLDER])).stat().st_mode & 0o777 == 0o700
        assert unix_sockets() == settings

    def test_the_user_decides(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(SOCKETS_VARIABLE, "false")
        assert unix_sockets() == {}

    def test_not_where_the_system_has_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(socket, "AF_UNIX")
        assert unix_sockets() == {}

    def test_not_where_paths_are_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(session, "_sockets_folder", lambda: "/" + "x" * 57)
        assert unix_sockets() == {}
        monkeypatch.setattr(session, "_sockets_folder", lambda: "/" + "x" * 56)
        assert unix_sockets() != {}


class TestJava:
    def home(self, folder: Path, script: str) -> str:
        """A folder that looks like Java's."""
        java = folder / "bin" / "java"
        java.parent.mkdir()
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o755)
        return str(folder)

    def test_none(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(JavaMissing, match=r"Spark needs Java 17 or newer: there is no java on PATH\. Install one"):
            check_java()

    def test_wrong_home(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        with pytest.raises(JavaMissing, match=r"JAVA_HOME is .*, which has no bin/java that runs"):
            check_java()

    @pytest.mark.parametrize("version", ["1.8", "11"])
    def test_an_old_java_is_an_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
        script = f"echo '    java.specification.version = {version}' >&2"
        monkeypatch.setenv("JAVA_HOME", self.home(tmp_path, script))
        with pytest.raises(JavaMissing, match=f"is version {version}"):
            check_java()

    def test_a_new_java_is_none(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("JAVA_HOME", self.home(tmp_path, "echo '    java.specification.version = 25' >&2"))
        check_java()
