"""How Java runs in processes that tests start: queries are short, so it compiles little and collects simply."""

from __future__ import annotations

SHORT_QUERIES = {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Of the environment of whatever starts Spark."""
