"""The rows of logical messages, which are written with `pg_logical_emit_message`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import encoded
from .schemas import SEQUENCE

MESSAGES = pa.schema(
    [
        pa.field("_sequence", SEQUENCE),
        pa.field("_xid", pa.int64()),
        pa.field("_commit_time", pa.timestamp("us", "UTC")),
        pa.field("transactional", pa.bool_()),
        pa.field("prefix", pa.string()),
        pa.field("content", pa.binary()),
    ]
)
"""`_sequence` is null for messages that belong to no transaction; `content` has the bytes, in the server's encoding."""


def message_rows(rows: pa.RecordBatch, encoding: str, prefix: str | None = None) -> pa.RecordBatch:
    """Returns the logical messages among committed rows.

    encoding   of the server
    prefix     only messages with this prefix
    """
    messages = rows.filter(pc.equal(rows["kind"], "MESSAGE"))
    if prefix is not None:
        found = pc.map_lookup(messages["detail"], "prefix", "first")
        messages = messages.filter(pc.fill_null(pc.equal(found, prefix), False))
    details = [dict(detail or ()) for detail in messages["detail"].to_pylist()]
    return pa.RecordBatch.from_arrays(
        [
            messages["sequence"].cast(SEQUENCE),
            messages["xid"],
            messages["commit_time"],
            pa.array([detail.get("transactional") == "true" for detail in details], pa.bool_()),
            pa.array([detail.get("prefix") for detail in details], pa.string()),
            pa.array([_content(detail, encoding) for detail in details], pa.binary()),
        ],
        schema=MESSAGES,
    )


def _content(detail: dict[str, str], encoding: str) -> bytes | None:
    text = detail.get("content")
    if text is None:
        return None
    return bytes.fromhex(text[2:]) if "content" in detail.get("binary", "") else encoded(text, "content", encoding)
