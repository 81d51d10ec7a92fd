"""The formats by name, a row each."""

from __future__ import annotations

from ..errors import OptionError
from ..options.table import nearest
from .base import Format
from .gaussdb_binary import GaussdbBinary
from .gaussdb_json import GAUSSDB_JSON
from .gaussdb_text import GAUSSDB_TEXT
from .mppdb_json import MPPDB_JSON
from .opengauss_test_decoding import OPENGAUSS_TEST_DECODING
from .pgoutput import PgOutput
from .sql_decoding import SQL_DECODING
from .test_decoding import TEST_DECODING

FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        GaussdbBinary(),
        GAUSSDB_JSON,
        GAUSSDB_TEXT,
        MPPDB_JSON,
        OPENGAUSS_TEST_DECODING,
        SQL_DECODING,
        TEST_DECODING,
        PgOutput(),
    )
}


def find_format(name: str) -> Format:
    """The format of this name; raises OptionError with the known ones."""
    if name not in FORMATS:
        raise OptionError(f"unknown format {name!r}{nearest(name, FORMATS)}; known are {', '.join(FORMATS)}")
    return FORMATS[name]
