"""What tests need to know of each format: a module each, with its record in SUPPORT."""

from . import (
    fixed_width,
    gaussdb_binary,
    gaussdb_json,
    gaussdb_text,
    mppdb_json,
    opengauss_test_decoding,
    pgoutput,
    postgres_test_decoding,
    sql_decoding,
)
from .record import MANY, Bad, Sample, Support

__all__ = ["MANY", "SUPPORTED", "Bad", "Sample", "Support"]

SUPPORTED: dict[str, Support] = {
    module.SUPPORT.format: module.SUPPORT
    for module in (
        gaussdb_binary,
        gaussdb_json,
        gaussdb_text,
        mppdb_json,
        opengauss_test_decoding,
        sql_decoding,
        postgres_test_decoding,
        pgoutput,
        fixed_width,
    )
}
"""By the name of the format."""
