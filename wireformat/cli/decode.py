"""`wireformat decode`: the row-change table as a Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from ..arrow.schemas import change_schema, with_format
from ..formats.registry import find_format
from ..options import ReadOptions
from .changes_file import changes_file, check_output
from .decoding import Decoding
from .inputs import all_parts, find_inputs
from .progress import progress


def decode(
    paths: Sequence[str], output: Path, *, format: str, column: str, columns: list[str] | None, **options: Any
) -> None:
    """Write the rows of all inputs to one Parquet file, which is there only when all went well.

    columns     of the row-change table; all of them if None
    The other options are those of `ReadOptions`. Raises Failed, OptionError.
    """
    schema = with_format(change_schema(columns), format)
    counted = change_schema([*schema.names, "kind", "message", "raw"])
    checked = ReadOptions.check(**options)
    decoding = Decoding(find_format(format), checked)
    check_output(output, paths)
    rows = corrupt = 0
    with (
        find_inputs(paths, find_format(format), column) as inputs,
        changes_file(output, schema) as file,
        progress(inputs) as advance,
    ):
        for part in all_parts(inputs):
            for batch in decoding.batches(part, counted):
                rows += len(batch)
                corrupt += _corrupt_rows(batch)
                file.write(batch.select(schema.names))
            advance(part.read_bytes)
        decoding.check()
    summary = [f"{rows:,} rows from {decoding.messages:,} messages"]
    if corrupt:
        summary.append(f"{corrupt:,} of them CORRUPT")
    if decoding.dropped:
        summary.append(f"{decoding.dropped:,} left out")
    typer.echo(f"{output}: {', '.join(summary)}", err=True)


def _corrupt_rows(batch: pa.RecordBatch) -> int:
    return pc.sum(pc.equal(batch["kind"], "CORRUPT")).as_py() or 0
