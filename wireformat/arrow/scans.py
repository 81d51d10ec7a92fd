"""The scans by format, a row each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .scan_gaussdb_binary import scan_gaussdb_binary

SCANS: dict[str, Callable[..., Any]] = {
    "gaussdb-binary": scan_gaussdb_binary,
}
