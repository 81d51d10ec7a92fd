"""wireformat reads and writes the logical-decoding streams of the PostgreSQL family.

bytes -> framing -> formats -> events -> stream      where records are; what they say; messages in order
              \\-> arrow: scan, gather                the same as columns, compiled

api         decode, encode, inspect, Decoder, transactions
capture     Capture: a stream and its tables
events      what records become
errors      what is raised
options     the options of reading and of the servers
framing     messages to frames, bytes to messages
formats     a row and a declaration for each format
grammar     what the text formats are made of
declare     helpers for the declarations of binary formats
pgtypes     type OIDs, names and values
stream      whole streams: order, transactions, positions
sources     files and other inputs of messages
arrow       the row-change table and typed tables (loads numba)
chunks      captures that are read in chunks, as on Spark
lake        all tables of a stream, as Parquet or Delta
live        a slot of a running server, as a lake
inspection  the bytes of a message, field by field
plugin      output plugins: the server's callbacks, and a replay that calls them with events
ddl         DDL templates to SQL
testing     made-up events and tables, for tests without a server
cli         the command `wireformat`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import arrow, ddl, lake, live, plugin, testing
    from .api import Decoder, decode, encode, guess_format, inspect, transactions
    from .capture import Capture
    from .errors import (
        BadCell,
        BadLength,
        BadRows,
        BadTag,
        BadTemplate,
        BadText,
        BadValue,
        DecodeError,
        EncodeError,
        LakeConflict,
        LakeError,
        LimitExceeded,
        MissingExtra,
        OptionError,
        OrderError,
        PluginError,
        ServerError,
        ShortData,
        StateError,
        TrailingBytes,
        UnknownRelation,
        WireformatError,
    )
    from .events import (
        UNCHANGED,
        Abort,
        Begin,
        Commit,
        CommitPrepared,
        Corrupt,
        Ddl,
        Delete,
        Event,
        Heartbeat,
        Insert,
        Message,
        Origin,
        Prepare,
        Relation,
        RollbackPrepared,
        RowChange,
        StreamAbort,
        StreamChange,
        StreamCommit,
        StreamPrepare,
        StreamStart,
        StreamStop,
        Truncate,
        TupleData,
        Type,
        Unchanged,
        Unknown,
        Update,
    )
    from .formats.guess import Guess
    from .formats.registry import FORMATS
    from .inspection import Inspection, Node
    from .lsn import lsn_text, lsn_value
    from .options import Options, ReadOptions
    from .stream.capture_position import CapturePosition, SlotPosition
    from .stream.committed_changes import CommittedChange, CommittedChanges, Sequence
    from .stream.positions import Position

__version__ = "0.1.0"

__all__ = [
    "FORMATS",
    "UNCHANGED",
    "Abort",
    "BadCell",
    "BadLength",
    "BadRows",
    "BadTag",
    "BadTemplate",
    "BadText",
    "BadValue",
    "Begin",
    "Capture",
    "CapturePosition",
    "Commit",
    "CommitPrepared",
    "CommittedChange",
    "CommittedChanges",
    "Corrupt",
    "Ddl",
    "DecodeError",
    "Decoder",
    "Delete",
    "EncodeError",
    "Event",
    "Guess",
    "Heartbeat",
    "Insert",
    "Inspection",
    "LakeConflict",
    "LakeError",
    "LimitExceeded",
    "Message",
    "MissingExtra",
    "Node",
    "OptionError",
    "Options",
    "OrderError",
    "Origin",
    "PluginError",
    "Position",
    "Prepare",
    "ReadOptions",
    "Relation",
    "RollbackPrepared",
    "RowChange",
    "Sequence",
    "ServerError",
    "ShortData",
    "SlotPosition",
    "StateError",
    "StreamAbort",
    "StreamChange",
    "StreamCommit",
    "StreamPrepare",
    "StreamStart",
    "StreamStop",
    "TrailingBytes",
    "Truncate",
    "TupleData",
    "Type",
    "Unchanged",
    "Unknown",
    "UnknownRelation",
    "Update",
    "WireformatError",
    "arrow",
    "ddl",
    "decode",
    "encode",
    "guess_format",
    "inspect",
    "lake",
    "live",
    "lsn_text",
    "lsn_value",
    "plugin",
    "testing",
    "transactions",
]

_NAMES = {
    ".api": "Decoder decode encode guess_format inspect transactions",
    ".errors": (
        "BadCell BadLength BadRows BadTag BadTemplate BadText BadValue DecodeError EncodeError "
        "LakeConflict LakeError LimitExceeded MissingExtra OptionError OrderError PluginError ServerError "
        "ShortData StateError TrailingBytes UnknownRelation WireformatError"
    ),
    ".events": (
        "UNCHANGED Abort Begin Commit CommitPrepared Corrupt Ddl Delete Event Heartbeat Insert "
        "Message Origin Prepare Relation RollbackPrepared RowChange StreamAbort StreamChange "
        "StreamCommit StreamPrepare StreamStart StreamStop Truncate TupleData Type Unchanged "
        "Unknown Update"
    ),
    ".formats.registry": "FORMATS",
    ".lsn": "lsn_text lsn_value",
    ".options": "Options ReadOptions",
    ".capture": "Capture",
    ".formats.guess": "Guess",
    ".inspection": "Inspection Node",
    ".stream.capture_position": "CapturePosition SlotPosition",
    ".stream.committed_changes": "CommittedChange CommittedChanges Sequence",
    ".stream.positions": "Position",
}
"""Where the public names are. A module is loaded when one of its names is first used: the command line needs few."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = ("arrow", "ddl", "lake", "live", "plugin", "testing")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name], __name__), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
