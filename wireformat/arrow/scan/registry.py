"""The scans by format, a row each; formats that have none are read by their declaration."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from ...grammar.lines import MPPDB, PARALLEL, POSTGRES_FREQUENT, TEST_DECODING, Line


class ScanRow(NamedTuple):
    """Where a scan is, and its settings.

    module, name    of the compiled walk; loaded when it is asked for, since each takes a part of every start
    quoted          of a text style: whether the names of tables are quoted
    lines           of a text style: its lines around transactions
    """

    module: str
    name: str
    quoted: bool = False
    lines: tuple[Line, ...] = ()


SCANS: dict[str, ScanRow] = {
    "gaussdb-binary": ScanRow("gaussdb_binary", "scan_gaussdb_binary"),
    "gaussdb-json": ScanRow("json_changes", "scan_gaussdb_json", True, PARALLEL),
    "gaussdb-text": ScanRow("text_changes", "scan_gaussdb_text", False, PARALLEL),
    "mppdb-json": ScanRow("json_changes", "scan_mppdb_json", True, MPPDB),
    "opengauss-test-decoding": ScanRow("text_changes", "scan_opengauss_text", True, TEST_DECODING),
    "test-decoding": ScanRow("text_changes", "scan_opengauss_text", True, POSTGRES_FREQUENT),
    "pgoutput": ScanRow("pgoutput", "scan_pgoutput"),
}


def load_scan(format: str) -> tuple[Callable[..., Any], list[int]]:
    """The compiled walk of a format, and its settings behind those that all scans have."""
    row = SCANS[format]
    scan = getattr(import_module(f".kernels.{row.module}", __package__), row.name)
    if not row.lines:
        return scan, []
    from .kernels.transaction_lines import line_settings

    return scan, [row.quoted, *line_settings(row.lines)]
