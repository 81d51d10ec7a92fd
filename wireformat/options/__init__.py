"""Options: the servers' options that shape a stream, and this package's own for reading one."""

from .reading import MODES, ReadOptions
from .table import WRITE_OPTIONS, Option, resolve

__all__ = ["MODES", "WRITE_OPTIONS", "Option", "ReadOptions", "resolve"]
