"""Helpers to write a format's layout as a construct declaration, and to run it with errors that say where."""

from .fields import Chosen, Coded, Counted, Identifier, Sized, Tagged, Text, Time, Told, ZeroEnded
from .numbers import Int8ub, Int16ub, Int32sb, Int32ub, Int64sb, Int64ub, Number, Struct, Tell
from .run import build, parse

__all__ = [
    "Chosen",
    "Coded",
    "Counted",
    "Identifier",
    "Int8ub",
    "Int16ub",
    "Int32sb",
    "Int32ub",
    "Int64sb",
    "Int64ub",
    "Number",
    "Sized",
    "Struct",
    "Tagged",
    "Tell",
    "Text",
    "Time",
    "Told",
    "ZeroEnded",
    "build",
    "parse",
]
