"""A program that tests start: a Spark Connect server. It says its port, and ends when its input does."""

from __future__ import annotations

import sys

import spark_udfs

from .conftest import SETTINGS

PLUGIN = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": 0,  # any that is free
}


def main() -> None:
    """Serve until standard input is closed, which it also is when the test is killed."""
    spark = spark_udfs.local_session(1, settings={**SETTINGS, **PLUGIN})
    service = getattr(spark.sparkContext._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    port = getattr(service, "MODULE$").localPort()  # of a Scala object
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
