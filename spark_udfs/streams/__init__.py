"""The answers of the capture of a streaming DataFrame: those that are streams themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import wireformat as wf
from wireformat.chunks.saved import Settings
from wireformat.errors import needs

from ..chunks.files import FileMessages
from ..chunks.frames import Messages
from ..chunks.groups import Plans
from ..chunks.light_pass import OF_TRANSACTIONS
from ..chunks.questions import Ask
from ..schemas import arrow_types, with_format
from ..session import ROCKSDB, STATE_STORE
from .processor import Processor
from .question import Question


class StreamAnswers:
    """Answers that are streaming DataFrames for the output mode append, with the columns that they have in a batch.

    The state of a query keeps how far its streams were read, and the raw messages of transactions that are open. Other
    questions have no answer on a stream that does not end: they raise OptionError.
    """

    _messages: Messages | FileMessages
    _format: str
    _options: Mapping[str, Any]

    def tables(self) -> NoReturn:
        """Raises OptionError."""
        raise _no_answer("tables", "ask a batch capture of some messages")

    def latest(self, table: str, *, keys: Any = None, schema: Any = None) -> NoReturn:
        """Raises OptionError."""
        raise _no_answer("latest", "merge the rows of `typed` into a table with foreachBatch")

    def open(self) -> NoReturn:
        """Raises OptionError."""
        raise _no_answer("open", "the state of the query keeps the messages of open transactions")

    def write(self, folder: Any, **options: Any) -> NoReturn:
        """Raises OptionError."""
        raise _no_answer("write", "save the messages with foreachBatch, and write a batch capture of them")

    @property
    def position(self) -> NoReturn:
        """Raises OptionError."""
        raise _no_answer("position", "the checkpoint of the query keeps it")

    @property
    def unknown_prepared(self) -> NoReturn:
        """Raises OptionError."""
        raise _no_answer("unknown_prepared", "the workers log the gids")

    @property
    def dropped(self) -> NoReturn:
        """Raises OptionError."""
        raise _no_answer("dropped", "the workers log the number of records")

    @property
    def _listed(self) -> NoReturn:
        raise wf.OptionError(
            "option schema: expected the columns of the table, which a stream must know before its first message; pass "
            "schema: a mapping of column to SQL type, or `tables().toArrow()` of a batch capture of some messages"
        )

    def _of_tables(self, tables: Any) -> Any:
        return self

    def _versions(self, table: str) -> None:
        """Returns None: later versions are not known."""

    def _versions_before(self, table: str) -> Mapping[tuple[str, int | None], int]:
        return {}

    @property
    def _plans(self) -> Plans:
        return {}  # the state of the query knows what is open

    def _answer(self, ask: Ask, schema: pa.Schema, plans: Plans | None, **of_batches: Any) -> DataFrame:
        """Returns the answers of all streams; `plans` is None if the question is about records, not transactions."""
        assert isinstance(self._messages, Messages), "files are no streaming DataFrame"
        df, positions = self._messages.df, self._messages.positions
        positions.check_result(schema.names)
        question = self._question(ask, schema, plans)
        keys = [f"s{index}" for index in range(len(question.streams))]
        names = [*keys, *[f"o{index}" for index in range(len(question.order))], "message"]
        columns = [*positions.columns, self._messages.payload]
        rows = df.select(*[column.alias(name) for column, name in zip(columns, names, strict=True)])
        fields = with_format(from_arrow_schema(question.schema).fields, self._format)
        result = StructType([*positions.stream_by, *fields])
        if not question.keeps_state:
            return rows.mapInArrow(partial(_record_batches, question), result)
        _check_session(df)
        groups = rows.groupBy(*keys) if keys else rows.withColumn("s", F.lit("")).groupBy("s")
        return groups.transformWithStateInPandas(Processor(question), result, outputMode="Append", timeMode="None")

    def _question(self, ask: Ask, schema: pa.Schema, plans: Plans | None, **options: Any) -> Question:
        streams, order = (
            arrow_types(StructType([*fields]))
            for fields in (self._messages.positions.stream_by, self._messages.positions.order_by)
        )
        filters = wf.ReadOptions.check(**{name: self._options[name] for name in OF_TRANSACTIONS})
        settings = Settings(
            self._format,
            "records" if plans is None else "transactions",
            str(self._options["two_phase"]),
            bool(self._options["drop_resent"]),
            tuple(field.name for field in order),
            filters.strict,
            filters.skip_empty_xacts,
            tuple(sorted(filters.exclude_users)),
        )
        return Question(settings, dict(self._options), tuple(streams), tuple(order), ask, schema.remove_metadata())


def check_stream(**options: Any) -> None:
    """Raises OptionError for options of `capture` that streaming DataFrames do not have."""
    for name, value in options.items():
        if value is not None:
            raise wf.OptionError(
                f"option {name}: expected None for a streaming DataFrame: the checkpoint of a query has the position, "
                "and each stream is one task"
            )


def _record_batches(question: Question, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow that answers a question about records, in any order of the messages."""
    from wireformat.chunks.capture import ChunkCapture  # loads numba, which the driver does not need

    for batch in batches:
        for stream, messages in question.by_stream(batch):
            given = pa.chunked_array([messages.columns[-1].cast(pa.binary())])
            capture = ChunkCapture(given, question.settings.format, threads=1, **question.options)
            for rows in question.asked(stream, capture, messages.select([*range(len(question.order))])):
                yield pa.RecordBatch.from_arrays(question.columns(stream, rows), schema=question.result)
            question.log(stream, (), capture.rows_dropped)


def _no_answer(question: str, instead: str) -> wf.OptionError:
    return wf.OptionError(f"{question}: expected a batch, got a streaming DataFrame: {instead}")


def _check_session(df: DataFrame) -> None:
    """Raises OptionError, or MissingExtra, if the session cannot keep the state of a stream."""
    provider = df.sparkSession.conf.get(STATE_STORE, None)
    if provider != ROCKSDB:
        raise wf.OptionError(
            f"a capture of a streaming DataFrame needs a RocksDB state store: set {STATE_STORE} to {ROCKSDB}, "
            f"got {provider}"
        )
    with needs("spark", "a capture of a streaming DataFrame"):
        import google.protobuf  # type: ignore[import-untyped]  # noqa: F401 - Spark's state needs it in the workers
