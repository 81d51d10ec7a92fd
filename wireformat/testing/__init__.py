"""A test double of a server: a stream of events that is consistent, and the tables as they are at its end.

tables    the tables of a stream, and values of their types
server    makes the events, and knows what the tables hold
streams   what users ask for: `stream`
"""

from .streams import Stream, stream
from .tables import Column, Table, Values

__all__ = ["Column", "Stream", "Table", "Values", "stream"]


def __dir__() -> list[str]:
    return sorted(__all__)
