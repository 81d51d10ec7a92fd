"""What a caller of `capture` gives: a DataFrame of messages, or files, and the positions after which streams go on.

Paths of local files are those that users of Spark write: `captures/`, `file:/data/captures`, `file:///data/*.parquet`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField

import wireformat as wf
from wireformat.options.checks import number, shown
from wireformat.stream.capture_position import CapturePosition

from .chunks.files import FileMessages
from .chunks.frame_files import FrameFiles
from .chunks.frames import Messages
from .chunks.groups import stream_key
from .fields import check_frame, column_of, payload_of
from .positions import MOST_CHUNKS, PositionColumns

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


def messages_of_frame(
    df: Any,
    payload: str,
    format: str,
    order_by: Sequence[str] | None,
    stream_by: Sequence[str],
    chunks: int | None,
) -> Messages:
    """Returns the messages of a DataFrame; raises OptionError and TypeError."""
    check_frame("df", df)
    messages = payload_of(df, payload)
    if order_by is None:
        raise wf.OptionError("option order_by: expected the names of the columns that order the messages of df")
    positions = PositionColumns.check(df, order_by, stream_by)
    if any(field.name.lower() == "record" for field in positions.order_by):
        raise wf.OptionError("option order_by: 'record' is a field of the positions in `tables`; rename the column")
    if chunks is not None and number("chunks", chunks, 1) > MOST_CHUNKS:
        raise wf.OptionError(f"option chunks: expected a number from 1 to {MOST_CHUNKS}, got {shown(chunks)}")
    files = None
    if not df.isStreaming and chunks is None:
        files = FrameFiles.of(df, payload, positions, format)
    return Messages(df, column_of(messages), positions, chunks, files)


def messages_of_files(paths: Any, format: str, column: str | None, **of_frames: Any) -> FileMessages:
    """Returns the messages of files.

    of_frames   options that files do not have

    Raises OptionError and OSError.
    """
    from wireformat.chunks.file_ranges import file_ranges, packed

    for name, value in of_frames.items():
        if value is not None and value != ():
            raise wf.OptionError(
                f"option {name}: expected none with paths: files are one stream, in the natural order of their names"
            )
    session = SparkSession.getActiveSession()
    if session is None:
        raise wf.OptionError("option paths: expected an active Spark session, got none; make one first")
    given = local_paths("paths", paths)
    try:
        return FileMessages(session, packed(file_ranges(given, format, column)))
    except wf.OptionError as error:
        words = (
            str(error).replace("option column", "option payload").replace("messages as column", "messages as payload")
        )
        raise wf.OptionError(words) from None


def positions_after(after: Any, format: str, stream_by: Sequence[StructField]) -> dict[str, CapturePosition]:
    """Returns the position of each stream, by its key; raises OptionError."""
    if after is None:
        return {}
    if isinstance(after, Mapping) is not bool(stream_by):
        expected = "a dict of the streams' values to their positions" if stream_by else "the position of one stream"
        got = "a dict" if isinstance(after, Mapping) else "one position"
        raise wf.OptionError(f"option after: expected {expected}, as `position` of an earlier capture is, got {got}")
    found = {}
    for stream, position in after.items() if isinstance(after, Mapping) else [((), after)]:
        types = [str if isinstance(field.dataType, StringType) else int for field in stream_by]
        if not isinstance(stream, tuple) or [*map(type, stream)] != types:
            expected = ", ".join(f"{field.name} ({field.dataType.simpleString()})" for field in stream_by)
            raise wf.OptionError(f"option after: expected a tuple of the values of {expected} for each stream")
        wf.Capture([], format, after=position)  # raises what is wrong with it
        found[stream_key(stream)] = CapturePosition.from_json(position) if isinstance(position, str) else position
    return found
