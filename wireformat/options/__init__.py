"""Options: the servers' options that shape a stream, and this package's own for reading one."""

from .gaussdb import Options
from .reading import MODES, TABLE_STATES, ReadOptions
from .table import TEST_DECODING_OPTIONS, WRITE_OPTIONS, Option, resolve, write_options

__all__ = [
    "MODES",
    "TABLE_STATES",
    "TEST_DECODING_OPTIONS",
    "WRITE_OPTIONS",
    "Option",
    "Options",
    "ReadOptions",
    "resolve",
    "write_options",
]
