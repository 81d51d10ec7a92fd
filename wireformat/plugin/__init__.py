"""Output plugins: the server's callbacks, and a replay that calls them with the events of a decoder."""

from .callbacks import Context, Encoder, OutputPlugin
from .delivery import whole_transactions
from .replay import replay

__all__ = ["Context", "Encoder", "OutputPlugin", "replay", "whole_transactions"]


def __dir__() -> list[str]:
    return sorted(__all__)
