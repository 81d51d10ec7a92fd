"""The current rows of a table with a key: the last state of each key, with values followed back through key changes.

Every change becomes steps of keys: a row comes to a key (insert, or an update that moves it there), is set, or goes
(delete, or moves away). Running windows over the steps of each key give its state after each step: for every column,
the value that was sent last since the row came, if any.

A row that moved without some of its values had them at its previous key. The step that left that key and the step that
came to the new key are one change with one position, which links them: the state of the old key when the row left is
the node of that position. A node may lack values too and then refers to an older node. Each round of jumps doubles the
distance that nodes reach back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from wireformat.arrow.typed_tables.current_rows import COMES, GOES, SETS

from ..fields import column_of
from .typed_rows import TypedRows, free_names

LOOK_AHEAD = 4
"""The rounds of jumps before the first check for completeness. They cover chains of 16 key changes; few are longer."""


ALWAYS = "always"
"""The name of the cell with the columns that every change sends."""


_IS_LAST = "next_lsn IS NULL AND occupied > 0"
"""Whether a state is the last one of a key that has a row."""


def rows_of_steps(steps: DataFrame, rows: TypedRows) -> DataFrame:
    """Returns the current row of each key, of changes that have whole new rows.

    steps   the columns stream_by of `rows`, and those of `key_steps`
    """
    keys = [*_streams(rows), *_keys(rows)]
    named = steps.toDF(*keys, "lsn", "ordinal", "role", "row")
    last = _states(named, keys, ["row"]).where(_IS_LAST)
    of_row = {field.name: f"row.{index}" for index, field in enumerate(rows.others, 1)}
    of_key = dict(zip(rows.keys, _keys(rows), strict=True))
    of_table = [
        F.col({**of_row, **of_key}[field.name]).alias(field.name, metadata=field.metadata) for field in rows.fields
    ]
    of_stream = zip(_streams(rows), rows.streams, strict=True)
    streams = [F.col(name).alias(field.name, metadata=field.metadata) for name, field in of_stream]
    return last.select(
        *streams, *of_table, F.col("row.0").alias("_sequence"), F.lit(None).cast("array<string>").alias("_unchanged")
    )


def rows_by_key(rows: TypedRows, changes: DataFrame, unsent: set[str], *, moves_unsent: bool, split: bool) -> DataFrame:
    """Returns the current row of each key.

    unsent          columns that some changes do not send
    moves_unsent    whether rows move without some of their values
    split           whether such moves are a delete and an insert each, not an update
    """
    names = [field.name for field in rows.others if field.name in unsent]
    cells = _names("c", names)
    steps = _steps(rows, changes, dict(zip(cells, names, strict=True)), split)
    came = ["came"] if moves_unsent else []
    states = _states(
        steps, [*_streams(rows), *_keys(rows)], ["sequence", *came, ALWAYS, *cells], ["at", "role", "unsent"]
    )
    last = states.where(_IS_LAST)
    if moves_unsent:
        nodes = states.where((F.col("role") == GOES) & F.col("unsent"))
        nodes = nodes.select("at", _lead(cells).alias("next"), F.lit(1).alias("seen"), *cells)
        last = _followed(last, _jumped(nodes, cells), cells, rows)
    expressions = dict(zip([*rows.keys, *names], [*_keys(rows), *(f"{cell}.value" for cell in cells)], strict=True))
    sent = [field.name for field in rows.others if field.name not in unsent]
    expressions |= dict(zip(sent, (f"{ALWAYS}.{name}" for name in _names("v", sent)), strict=True))
    of_stream = zip(_streams(rows), rows.streams, strict=True)
    of_table = ((expressions[field.name], field) for field in rows.fields)
    columns = [F.col(name).alias(field.name, metadata=field.metadata) for name, field in (*of_stream, *of_table)]
    unknown = F.array_compact(
        F.array(*[F.when(~_known(cell), F.lit(name)) for cell, name in zip(cells, names, strict=True)])
    )
    missing = F.when(F.size(unknown) > 0, unknown) if cells else F.lit(None).cast("array<string>")
    return last.select(*columns, F.col("sequence").alias("_sequence"), missing.alias("_unchanged"))


def _steps(rows: TypedRows, changes: DataFrame, cells: Mapping[str, str], split: bool) -> DataFrame:
    """Returns one row per step: key columns k…, at (its position), lsn, ordinal, role, unsent, and cells.

    cells     names of cells, and of their columns
    unsent    whether the row moves and the change lacks some of its values

    A cell has `known` and `value`; it is null if the step does not affect the column. If a row comes and the change
    lacks the column, the value is not known. More cells: `sequence`, of steps that leave a row; `came`, the position
    of a step at which a row comes; and one that holds all columns that every change sends.
    """

    def step(key: Sequence[Column], role: int) -> Column:
        return F.struct(
            *[column.alias(name) for column, name in zip(key, names, strict=True)], F.lit(role).alias("role")
        )

    names = [*_streams(rows), *_keys(rows)]
    old, new = ([*rows.stream, *key] for key in (rows.old_key, rows.new_key))
    steps = (
        F.when(rows.change == "insert", F.array(step(new, COMES)))
        .when(rows.change == "delete", F.array(step(new, GOES)))
        .when(rows.moves, F.array(step(old, GOES), step(new, COMES)))
        .otherwise(F.array(step(new, SETS)))
    )
    unsent = F.when(rows.change == "delete", F.lit(split)).otherwise(rows.lists_unsent)
    (made,) = free_names(changes.columns, 1)
    role = F.col(f"{made}.role")
    sent = [field for field in rows.others if field.name not in cells.values()]
    always = [column_of(field).alias(name) for field, name in zip(sent, _names("v", sent), strict=True)]
    return changes.select("*", F.explode(steps).alias(made)).select(
        *[F.col(f"{made}.{name}").alias(name) for name in names],
        role.alias("role"),
        rows.position.alias("at"),
        rows.position["lsn"].alias("lsn"),
        rows.position["ordinal"].alias("ordinal"),
        unsent.alias("unsent"),
        F.when(role != GOES, F.col("_sequence")).alias("sequence"),
        F.when(role == COMES, rows.position).alias("came"),
        F.when(role != GOES, F.struct(*always) if always else F.struct(F.lit(0))).alias(ALWAYS),
        *[_cell(rows, name, role).alias(cell) for cell, name in cells.items()],
    )


def _cell(rows: TypedRows, name: str, role: Column) -> Column:
    value = rows.sent_value(name)
    known = F.struct(F.lit(True).alias("known"), value.alias("value"))
    unknown = F.struct(F.lit(False).alias("known"), F.when(F.lit(False), value).alias("value"))
    return F.when((role != GOES) & ~rows.unsent(name), known).when(role == COMES, unknown)


def _states(steps: DataFrame, keys: Sequence[str], cells: Sequence[str], kept: Sequence[str] = ()) -> DataFrame:
    """Returns the steps with the state of the key after each: keys, kept, cells, next_lsn, occupied.

    steps   keys, kept, cells, and lsn, ordinal and role

    A cell has the last value of the key that is not null. A key holds one row between transactions. Within a
    transaction it may hold two (keys swapped under a deferred constraint); the row that came first goes first. So
    whether the key holds a row after the transaction is counted. If the transaction begins with a step other than
    COMES, there was a row before it. Otherwise, the count or the previous transaction decides.

    The expressions are texts: as objects, they take thousands of calls of the JVM. The windows have one order.
    """
    of_keys = f"PARTITION BY {', '.join(keys)}"
    in_order = f"({of_keys} ORDER BY lsn, ordinal)"
    so_far = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    of_key = f"({of_keys} ORDER BY lsn, ordinal {so_far})"
    of_transaction = f"({of_keys}, lsn ORDER BY ordinal {so_far})"
    running = steps.repartition(*keys).selectExpr(
        *keys,
        *("lsn", "ordinal", *kept),
        *[f"last({cell}) IGNORE NULLS OVER {of_key} AS {cell}" for cell in cells],
        f"lead(lsn) OVER {in_order} AS next_lsn",
        f"sum(role) OVER {of_transaction} AS more",
        f"first(role) OVER {of_transaction} AS first",
    )
    counted = (
        "CASE WHEN next_lsn = lsn THEN NULL "  # the transaction goes on
        f"WHEN first <> {COMES} THEN 1 + more WHEN more > 0 THEN 1 WHEN more < 0 THEN 0 END"
    )
    occupied = f"last({counted}) IGNORE NULLS OVER {of_key} AS occupied"
    return running.selectExpr(*keys, *kept, *cells, "next_lsn", occupied)


def _names(letter: str, columns: Sequence[object]) -> list[str]:
    return [f"{letter}{index}" for index in range(len(columns))]


def _keys(rows: TypedRows) -> list[str]:
    return _names("k", rows.keys)


def _streams(rows: TypedRows) -> list[str]:
    return _names("s", rows.streams)


def _known(cell: str) -> Column:
    return F.coalesce(F.col(cell)["known"], F.lit(False))


def _lead(cells: Sequence[str]) -> Column:
    """Returns the position of the node with the missing values, or null if none are missing."""
    return F.when(~reduce(and_, map(_known, cells), F.lit(True)), F.col("came"))


def _jumped(nodes: DataFrame, cells: Sequence[str]) -> DataFrame:
    """Returns the nodes with all values that older nodes have: columns at, cells.

    The positions alone are followed first, to find the number of rounds.
    """
    links, rounds, longest = nodes.select("at", "next", "seen"), 0, None
    while longest is None:
        for _ in range(LOOK_AHEAD):
            links = _jump(links, [])
        rounds += LOOK_AHEAD
        seen = links.agg(F.max("seen").alias("longest"), F.count("next").alias("unseen")).collect()[0]
        longest = None if seen["unseen"] else seen["longest"] or 1
    for _ in range((longest - 1).bit_length()):
        nodes = _jump(nodes, cells)
    return nodes


def _jump(nodes: DataFrame, cells: Sequence[str]) -> DataFrame:
    """Gives every node the values and the reference of the node it refers to, where it lacks them. `seen` counts nodes.

    At most one node refers to a node, because a row moves away only once. So each group holds one pair, and no node is
    read twice, whatever the number of rounds.
    """
    node = F.struct("at", "next", "seen", *cells)
    leads = F.col("next").isNotNull()
    nothing = F.when(F.lit(False), node)
    meets = F.array(
        F.struct(F.col("at").alias("where"), node.alias("here"), nothing.alias("asks")),
        F.struct(F.col("next").alias("where"), nothing.alias("here"), F.when(leads, node).alias("asks")),
    )
    pairs = (
        nodes.select(F.explode(meets).alias("meet"))
        .select("meet.*")
        .where(F.col("where").isNotNull())
        .groupBy("where")
        .agg(F.first("here", ignorenulls=True).alias("here"), F.first("asks", ignorenulls=True).alias("asks"))
    )
    merged = F.struct(
        F.col("asks.at").alias("at"),
        F.col("here.next").alias("next"),
        (F.col("asks.seen") + F.coalesce("here.seen", F.lit(0))).alias("seen"),
        *[
            F.when(_known(f"asks.{cell}"), F.col(f"asks.{cell}")).otherwise(F.col(f"here.{cell}")).alias(cell)
            for cell in cells
        ],
    )
    stays = F.col("here").isNotNull() & F.col("here.next").isNull()
    after = F.array_compact(F.array(F.when(F.col("asks").isNotNull(), merged), F.when(stays, F.col("here"))))
    return pairs.select(F.explode(after).alias("node")).select("node.*")


def _followed(last: DataFrame, nodes: DataFrame, cells: Sequence[str], rows: TypedRows) -> DataFrame:
    """Returns the rows with the values of their nodes.

    Rows that need no node get a unique position, so that they do not all go to one task.
    """
    streams = [F.col(name).alias(f"stream_{index}") for index, name in enumerate(_streams(rows))]
    nowhere = F.struct(F.xxhash64(*_keys(rows)).alias("lsn"), F.lit(-1).cast("bigint").alias("ordinal"), *streams)
    left = last.withColumn("node", F.coalesce(_lead(cells), nowhere))
    right = nodes.select(F.col("at").alias("node"), *[F.col(cell).alias(f"older_{cell}") for cell in cells])
    joined = left.join(right, "node", "left")
    filled = {cell: F.when(_known(cell), F.col(cell)).otherwise(F.col(f"older_{cell}")) for cell in cells}
    return joined.withColumns(filled)
