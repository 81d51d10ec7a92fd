"""The local session, and what the package may touch: no Java is a clear error, and Spark Connect stays possible."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_udfs
from spark_udfs.session import JavaMissing, RemoteProcess, check_java, local_session

PACKAGE = Path(spark_udfs.__file__).parent

NOT_IN_CONNECT = {"sparkContext", "_sc", "_jvm", "_jsc", "_jdf", "_jc", "_jsparkSession", "_jseq", "rdd"}


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_nothing_that_spark_connect_does_not_have(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & NOT_IN_CONNECT == set()


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
def test_again_gives_the_same_session(spark: SparkSession) -> None:
    assert local_session(2) is spark


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
    def test_old(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
        script = f"echo '    java.specification.version = {version}' >&2"
        monkeypatch.setenv("JAVA_HOME", self.home(tmp_path, script))
        with pytest.raises(JavaMissing, match=f"is version {version}"):
            check_java()

    def test_new(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("JAVA_HOME", self.home(tmp_path, "echo '    java.specification.version = 25' >&2"))
        check_java()
