"""How a question about a DataFrame of raw messages is answered: by each chunk, with its part of the plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from wireformat.arrow.typed_tables.listed import check_listed, check_one_version, of_table, rows_of
from wireformat.events import Relation
from wireformat.options.checks import one_of
from wireformat.options.table_names import one_table
from wireformat.stream.capture_position import CapturePosition

from .chunks.files import FileMessages
from .chunks.frames import Messages
from .chunks.groups import Plans, stream_key
from .chunks.light_pass import LightPass
from .chunks.questions import Ask, TypedTable, answer_batches, ask_position, ask_steps, latest_batches
from .chunks.reading import Reading, other_rows
from .schemas import arrow_types, with_format
from .tables.typed_rows import TypedRows, arrow_columns, free_names, spark_columns

Own = TypeVar("Own", bound="CaptureAnswers")


class CaptureAnswers:
    """The messages of a capture, what the light pass has found in them, and the DataFrames of answers.

    messages       in chunks, or in files
    options        of `wireformat.Capture`
    after          the positions after which the streams continue
    skips_unread   whether records that could not be read are left out: rejects take them
    """

    def __init__(
        self,
        messages: Messages | FileMessages,
        format: str,
        options: Mapping[str, Any],
        after: Mapping[str, CapturePosition],
        skips_unread: bool = False,
    ) -> None:
        self._messages = messages
        self._format = format
        self._options = options
        self._after = after
        self._light = LightPass(messages, format, options, after, skips_unread)
        self._spark = messages.session

    @property
    def _positions(self) -> dict[str, CapturePosition]:
        """The positions by stream."""
        self._light.check_order()
        planned = self._light.planned
        oldest = {key: plan.oldest_open for key, plan in planned.items()}
        relations = self._relations_in({chunk for chunk in oldest.values() if chunk is not None})
        found = {key: after._replace(relations_of_input=None) for key, after in self._after.items()}
        for key, plan in planned.items():
            changes = self._light.reading.relation_changes.get(key, ())
            reached = plan.position(self._format, changes, relations.get((oldest[key], key)))
            found[key] = reached._replace(slot=found[key].slot) if key in found else reached
        return found

    @property
    def _listed(self) -> pa.Table:
        return self._light.listed

    def _of_tables(self: Own, tables: Sequence[str] | None) -> Own:
        """Returns this capture, or one that steps over other tables than these if a row could not be read."""
        light = self._light.stepping_over(tables)
        if light is self._light:
            return self
        found = copy(self)
        found._light = light
        return found

    def _typed_table(
        self,
        table: str,
        schema: Any,
        *,
        images: str = "new",
        evolution: str = "union",
        complete: bool = False,
        split_key_changes: bool = False,
        keys: Sequence[str] | None = None,
    ) -> TypedTable:
        """Returns the checked arguments of `typed`."""
        one_of("evolution", evolution, ("union", "error"))
        one_table(table)
        if schema is None:
            check_listed(self._listed, table, self._format)
            if evolution == "error":
                check_one_version(self._listed, table)
        else:
            _ = self._plans  # where no row can be read, an OrderError comes before BadRows, as on one machine
        given = arrow_columns(schema) if isinstance(schema, StructType) else self._listed if schema is None else schema
        return TypedTable(
            table,
            spark_columns(given, table, self._format),
            self._versions(table),
            self._versions_before(table),
            self._format,
            str(self._options["mode"]),
            {
                "images": images,
                "evolution": evolution,
                "complete": complete,
                "split_key_changes": split_key_changes,
                "keys": keys,
            },
        )

    def _steps(self, asked: TypedTable, rows: TypedRows) -> DataFrame:
        """Returns the steps of keys that the changes of a table make, after the columns stream_by."""
        from .tables.key_steps import steps_schema  # loads numba

        schema = steps_schema(asked.part().schema, rows.keys)
        names = free_names([field.name for field in rows.streams], len(schema))
        schema = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
        return self._answer(partial(ask_steps, asked, rows.keys), schema, self._plans)

    def _versions(self, table: str) -> pa.Table | None:
        """Returns the list of the tables, of which a chunk sees only some versions; None if it lacks this one."""
        return self._listed if rows_of(self._listed, table) else None

    def _latest_in_order(self, asked: TypedTable, keys: Sequence[str]) -> DataFrame:
        """Returns the current rows of a table, in a task for each stream.

        keys   (): the identities that the stream states
        """
        from wireformat.arrow.typed_tables.latest import latest as current_rows  # loads numba

        empty = pa.Table.from_batches([], asked.part().schema)
        schema, fields = self._schema_of_answer(current_rows(empty, ()).schema)
        reading = self._light.reading_in_streams
        own = {key: of_table(self._light.listed_of(key), one_table(asked.table)) for key in self._light.summaries}
        answer = partial(latest_batches, reading, self._after, asked, keys, own, schema)
        return self._messages.map_streams(self._light.plans_of_streams, answer, fields)

    def _versions_before(self, table: str) -> Mapping[tuple[str, int | None], int]:
        return self._light.versions_before(self._light.all_streams).get(one_table(table), {})

    @property
    def _plans(self) -> Plans:
        return self._light.plans

    def _relations_in(self, chunks: Collection[int]) -> dict[tuple[int | None, str], tuple[Relation, ...]]:
        """Returns the relations before the oldest message that is needed at the end of each chunk, by its streams."""
        if not chunks:
            return {}
        count = len(self._messages.positions.stream_by)
        plans = {chunk: self._plans[chunk] for chunk in chunks}
        schema = pa.schema([("chunk", pa.int32()), ("position", pa.string())])
        rows = self._answer(ask_position, schema, plans, only_planned=True).collect()
        found = {
            (row[count], stream_key(row[:count])): CapturePosition.from_json(row[count + 1]).relations for row in rows
        }
        if any((chunk, stream) not in found for chunk, of_streams in plans.items() for stream in of_streams):
            raise other_rows("the same partitions as before", "less of them")
        return found

    def _answer(
        self,
        ask: Ask,
        schema: pa.Schema,
        plans: Plans | None,
        *,
        only_planned: bool = False,
        tables: Sequence[str] | None = None,
    ) -> DataFrame:
        """Returns the answers of all chunks, with the columns stream_by first.

        schema         of an answer
        plans          of the chunks, by number; None if the question is about records, and not about transactions
        only_planned   reads only the chunks of these plans
        tables         patterns: only row changes of these tables are read at all
        """
        given, fields = self._schema_of_answer(schema)
        if plans is None:  # otherwise the light pass has judged the messages
            self._light.check()
            plans = self._light.counts
        answer = partial(answer_batches, self._reading_with(plans, tables), ask, given)
        return self._messages.map_chunks(answer, fields, plans, only_planned=only_planned)

    def _schema_of_answer(self, schema: pa.Schema) -> tuple[pa.Schema, StructType]:
        """Returns the schema of an answer with the columns stream_by first, for Arrow and for Spark."""
        streams = self._messages.positions.stream_by
        self._messages.positions.check_result(schema.names)
        fields = with_format(from_arrow_schema(schema.remove_metadata()).fields, self._format)
        return pa.schema([*arrow_types(StructType([*streams])), *schema]), StructType([*streams, *fields])

    def _reading_with(self, plans: Plans, tables: Sequence[str] | None = None) -> Reading:
        """Returns the reading with the plans of chunks, if they are not among the messages."""
        own = plans if self._messages.are_chunks else None
        reading = self._light.reading if tables is None else self._light.reading_of(tables)
        return replace(reading, is_planned=True, plans=own, has_empty=self._light.has_empty)
