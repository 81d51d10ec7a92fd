"""The last results of each group, kept in a file: a page can have groups of several runs, each measured as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from .measure import Result


class Run(NamedTuple):
    """The results of a group, on which day and machine they were measured, and how busy it was before."""

    machine: str
    load: float
    results: dict[str, Result]


def keep(path: Path, runs: Mapping[str, Run]) -> None:
    """Adds these runs to the file, in place of earlier ones of their groups."""
    found = {**kept(path), **runs}
    text = {
        group: {**run._asdict(), "results": [asdict(one) for one in run.results.values()]}
        for group, run in found.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(text, indent=1), encoding="utf-8")


def kept(path: Path) -> dict[str, Run]:
    """The runs in the file, by their groups."""
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {group: Run(one["machine"], one["load"], dict(map(_named, one["results"]))) for group, one in found.items()}


def _named(fields: dict[str, object]) -> tuple[str, Result]:
    result = Result(**{**fields, "seconds": tuple(fields["seconds"])})  # type: ignore[arg-type]
    return result.name, result
