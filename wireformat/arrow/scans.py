"""The scans by format, a row each; formats that have none are read by their declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..grammar.lines import MPPDB, PARALLEL, TEST_DECODING
from .scan_gaussdb_binary import scan_gaussdb_binary
from .scan_json import scan_gaussdb_json, scan_mppdb_json
from .scan_lines import line_settings
from .scan_text import scan_gaussdb_text, scan_opengauss_text


class ScanRow(NamedTuple):
    """A scan and its settings.

    run         the compiled walk
    settings    behind those that all scans have: whether names of tables are quoted, and the lines
    """

    run: Callable[..., Any]
    settings: tuple[int, ...] = ()


SCANS: dict[str, ScanRow] = {
    "gaussdb-binary": ScanRow(scan_gaussdb_binary),
    "gaussdb-json": ScanRow(scan_gaussdb_json, (True, *line_settings(PARALLEL))),
    "gaussdb-text": ScanRow(scan_gaussdb_text, (False, *line_settings(PARALLEL))),
    "mppdb-json": ScanRow(scan_mppdb_json, (True, *line_settings(MPPDB))),
    "opengauss-test-decoding": ScanRow(scan_opengauss_text, (True, *line_settings(TEST_DECODING))),
}
