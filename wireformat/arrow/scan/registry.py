"""The scan of each format, as its row names it; formats without one are read by their declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ...formats.base import Format
from ...formats.registry import find_row
from ...formats.row import load
from ...options import ReadOptions
from ..arrays import Array
from .dictionary import DICTIONARY
from .message_batches import MessageBatch
from .notes import CHARACTERS, ScanInput

FindInput = Callable[[MessageBatch], ScanInput]
"""Returns what the scan of a message batch must be given. It is called for each message batch, in order."""


class Preparation(Protocol):
    """Finds out what the scan must know of the records before each message batch; made once, with (settings, options).

    settings    int64[s]: the numbers that all scans are given
    """

    def begin(self, format: Format) -> FindInput:
        """Begins a walk over message batches, from what this format knows now; it does not change the format."""


class _NoPreparation:
    def __init__(self, settings: Array, options: ReadOptions) -> None:
        self._input = ScanInput(DICTIONARY, settings, b"")

    def begin(self, format: Format) -> FindInput:
        return lambda message_batch: self._input


def load_binary_writer(format: str) -> Callable[..., tuple[Array, int]]:
    """What writes the binary values of a format as text; see binary_text/walk.py."""
    scan = find_row(format).scan
    if scan is None or scan.binary is None:
        raise TypeError(f"{format} has no binary values")
    write: Callable[..., tuple[Array, int]] = load(scan.binary)
    return write


def load_rare_walk(format: str) -> Callable[..., int]:
    """The compiled walk over the rare records of a format; see rare_records.py."""
    scan = find_row(format).scan
    if scan is None or scan.rare is None:
        raise TypeError(f"{format} has no rare records")
    walk: Callable[..., int] = load(scan.rare)
    return walk


def load_fault_walk(format: str) -> Callable[..., None] | None:
    """What finds faults in records of a format that its scan has declined; None if only the declaration does."""
    scan = find_row(format).scan
    walk: Callable[..., None] | None = None if scan is None or scan.faults is None else load(scan.faults)
    return walk


def learns(format: str) -> bool:
    """Whether the scan learns relations from rows: where rows name their tables, and no number stands for them."""
    return not find_row(format).has_relation_ids


def load_scan(format: str, settings: list[int], options: ReadOptions) -> tuple[Callable[..., int], Preparation]:
    """The compiled walk of a format that has one, and what prepares each message batch for it.

    settings    the numbers that all scans are given
    """
    scan = find_row(format).scan
    if scan is None:
        raise TypeError(f"{format} has no scan")
    if scan.lines is not None:
        from .kernels.transaction_lines import line_settings

        ddl = None if scan.ddl is None else load(scan.ddl)
        lines = line_settings(load(scan.lines), scan.messages, scan.rare is not None, ddl)
        settings = [*settings, scan.quoted, *lines]
    numbers = np.array(settings, np.int64)
    if learns(format) and options.encoding != "utf-8":
        from .relations.characters import characters_of

        characters = characters_of(options.encoding)
        numbers[CHARACTERS] = len(numbers) if len(characters) else 0
        numbers = np.concatenate([numbers, characters])
    prepare: Callable[[Array, ReadOptions], Preparation] = load(scan.prepare) if scan.prepare else _NoPreparation
    walk: Callable[..., Any] = load(scan.walk)
    return walk, prepare(numbers, options)
