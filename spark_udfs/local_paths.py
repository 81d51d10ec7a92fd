"""Paths of local files as users of Spark write them: `captures/`, `file:/data/captures`, `file:///data/*.parquet`."""

from __future__ import annotations

import re
from typing import Any

import wireformat as wf

_LOCAL = re.compile(r"file:(?://(?:localhost)?)?(/[^/].*|/)", re.IGNORECASE | re.DOTALL)
_URI = re.compile(r"(file:|[a-z][a-z0-9+.-]+://)", re.IGNORECASE)


def local_paths(option: str, paths: Any) -> Any:
    """Returns a path or a list of paths without `file:`, whose text is not percent-encoded, as in Spark's own sources.

    Raises OptionError for files of other file systems.
    """
    if isinstance(paths, (list, tuple)):
        return [_local(option, path) for path in paths]
    return _local(option, paths)


def _local(option: str, path: Any) -> Any:
    if not isinstance(path, str) or (uri := _URI.match(path)) is None:
        return path
    local = _LOCAL.fullmatch(path)
    if local is None:
        raise wf.OptionError(
            f"option {option}: expected local files, as in /data/captures or file:///data/captures, got {uri[0]}…: "
            "read others with spark.read, and give spark_udfs.capture the DataFrame"
        )
    return local[1]
