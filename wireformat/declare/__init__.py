"""Helpers to write a format's layout as a construct declaration, and to run it with errors that say where."""

from .fields import Counted, Identifier, Tagged, Text
from .run import build, parse

__all__ = ["Counted", "Identifier", "Tagged", "Text", "build", "parse"]
