"""The table of column types: the Arrow type and the Spark type of each SQL type, and which values do not fit."""

from __future__ import annotations

from typing import NamedTuple

from .catalogue import SQL_NAMES
from .sql_types import SqlType

MAX_DIGITS = 38
"""Digits of Arrow's decimal128 and of Spark's decimal."""


class ColumnRow(NamedTuple):
    """A row of the table.

    names    SQL types
    reading  how a text becomes a value: a key of the readers in wireformat/arrow/typed_tables/casts.py
    arrow    Arrow type, as Arrow prints it
    spark    Spark type, as Spark prints it
    policy   what fits and what does not
    """

    names: tuple[str, ...]
    reading: str
    arrow: str
    spark: str
    policy: str


class ColumnType(NamedTuple):
    """The type of a column: the fields of a ColumnRow that hold for it, and the reading of elements."""

    reading: str
    arrow: str
    spark: str
    dimensions: int = 0
    delimiter: str = ","


_AS_SENT = "The text as sent."
_YEARS = "Years 1 to 9999. `infinity`, `-infinity`, BC and later years do not fit"

TYPES = (
    ColumnRow(("boolean",), "boolean", "bool", "boolean", "`t`, `f`, `true`, `false`, `1`, `0`."),
    ColumnRow(("smallint",), "integer", "int16", "smallint", "All values fit."),
    ColumnRow(
        ("tinyint",),
        "integer",
        "int16",
        "smallint",
        "All values fit: 0 to 255 in openGauss. Spark has no unsigned type.",
    ),
    ColumnRow(("integer",), "integer", "int32", "int", "All values fit."),
    ColumnRow(("bigint",), "integer", "int64", "bigint", "All values fit."),
    ColumnRow(
        ("oid", "xid", "xid32", "cid"),
        "integer",
        "int64",
        "bigint",
        "All values fit: unsigned 32 bits; openGauss's xid has 64 bits.",
    ),
    ColumnRow(("xid8",), "decimal", "decimal128(20, 0)", "decimal(20,0)", "All values fit: unsigned 64 bits."),
    ColumnRow(("int16",), "text", "string", "string", "The text as sent: 128 bits need more than 38 digits."),
    ColumnRow(("real",), "float", "float", "float", "All values fit, including `NaN`, `Infinity`, `-Infinity`."),
    ColumnRow(
        ("double precision",), "float", "double", "double", "All values fit, including `NaN`, `Infinity`, `-Infinity`."
    ),
    ColumnRow(
        ("numeric",),
        "text",
        "string",
        "string",
        "Without precision or with a precision above 38: the exact text as sent, including `NaN` and `Infinity`.",
    ),
    ColumnRow(
        ("numeric(p,s)",),
        "decimal",
        "decimal128(p, s)",
        "decimal(p,s)",
        "Up to 38 digits, including zeros directly after the decimal point. `NaN` does not fit.",
    ),
    ColumnRow(("money",), "text", "string", "string", "The text as sent: it depends on the server's locale."),
    ColumnRow(
        ("text", "character varying", "nvarchar2", "clob", "name", '"char"', "unknown"),
        "text",
        "string",
        "string",
        _AS_SENT,
    ),
    ColumnRow(("character",), "text", "string", "string", "The text as sent, with trailing blanks."),
    ColumnRow(("bytea",), "bytea", "binary", "binary", r"Both output formats fit: hex digits with `\x`, and escapes."),
    ColumnRow(("raw", "blob"), "hex", "binary", "binary", r"Hex digits, with or without `\x`."),
    ColumnRow(("uuid",), "text", "string", "string", _AS_SENT),
    ColumnRow(("json", "jsonb", "jsonpath", "xml"), "text", "string", "string", _AS_SENT),
    ColumnRow(("date",), "date", "date32[day]", "date", f"{_YEARS}."),
    ColumnRow(
        ("time without time zone",),
        "time",
        "time64[us]",
        "string",
        "`24:00:00` does not fit. On Spark, the text as sent.",
    ),
    ColumnRow(
        ("time with time zone",),
        "text",
        "string",
        "string",
        "The text as sent: no Arrow type keeps the offset of a time.",
    ),
    ColumnRow(
        ("timestamp without time zone", "smalldatetime"),
        "timestamp",
        "timestamp[us]",
        "timestamp_ntz",
        f"{_YEARS}.",
    ),
    ColumnRow(
        ("timestamp with time zone", "abstime"),
        "timestamptz",
        "timestamp[us, tz=UTC]",
        "timestamp",
        f"Converted to UTC. {_YEARS}.",
    ),
    ColumnRow(
        ("interval", "reltime", "tinterval"),
        "text",
        "string",
        "string",
        "The text as sent, in the server's IntervalStyle. Months, days and time do not fit into one number.",
    ),
    ColumnRow(("bit", "bit varying"), "text", "string", "string", "The text as sent, such as `101`."),
    ColumnRow(
        ("int2vector", "int2vector_extend"),
        "integer vector",
        "list<element: int16>",
        "array<smallint>",
        "All values fit.",
    ),
    ColumnRow(
        ("oidvector", "oidvector_extend"), "integer vector", "list<element: int64>", "array<bigint>", "All values fit."
    ),
    ColumnRow(
        (
            *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
            *("int4multirange", "int8multirange", "nummultirange", "tsmultirange", "tstzmultirange", "datemultirange"),
        ),
        "text",
        "string",
        "string",
        _AS_SENT,
    ),
    ColumnRow(
        ("point", "lseg", "path", "box", "polygon", "line", "circle"),
        "text",
        "string",
        "string",
        _AS_SENT,
    ),
    ColumnRow(("inet", "cidr", "macaddr", "macaddr8"), "text", "string", "string", _AS_SENT),
    ColumnRow(
        ("tsvector", "tsquery", "gtsvector", "vector", "halfvec", "sparsevec", "hll", '"TdigestData"'),
        "text",
        "string",
        "string",
        _AS_SENT,
    ),
    ColumnRow(
        (
            *("regproc", "regprocedure", "regoper", "regoperator", "regclass", "regtype", "regconfig", "regdictionary"),
            *("regnamespace", "regrole", "regcollation"),
        ),
        "text",
        "string",
        "string",
        "The text as sent: a name, not a number.",
    ),
    ColumnRow(
        (
            *("tid", "pg_lsn", "txid_snapshot", "pg_snapshot", "aclitem", "refcursor", "smgr", "bfile"),
            *("pg_node_tree", "pg_ndistinct", "pg_dependencies", "pg_mcv_list"),
            *("pg_brin_bloom_summary", "pg_brin_minmax_multi_summary", "hash16", "hash32"),
            *("byteawithoutorderwithequalcol", "byteawithoutordercol"),
        ),
        "text",
        "string",
        "string",
        _AS_SENT,
    ),
    ColumnRow(
        ("T[]",),
        "list",
        "list<element: T>",
        "array<T>",
        "One dimension. Lower bounds are dropped: `[0:1]={1,2}` becomes `[1, 2]`. For two dimensions, give the type as "
        "`T[][]` in `schema`, and so on.",
    ),
    ColumnRow(
        ("every other type",),
        "text",
        "string",
        "string",
        "The text as sent: enums, composite types, domains, extension types, and `oid:16385`.",
    ),
)
"""All types of the catalogue, and the last two rows for what is made of them."""

_BY_NAME = {name: row for row in TYPES for name in row.names}
_DELIMITERS = {"box": ";"}
"""Types whose elements are not separated by commas: pg_type.typdelim."""

TEXT = ColumnType("text", "string", "string")


def column_type(sql: SqlType) -> ColumnType:
    """The column type of an SQL type; text for one that is in no catalogue."""
    if sql.is_own:
        one = TEXT
    elif sql.name == "numeric" and sql.modifiers:
        one = _numeric(*sql.modifiers[:2])
    elif sql.name in _BY_NAME and sql.name in _BUILT_IN:
        row = _BY_NAME[sql.name]
        one = ColumnType(row.reading, row.arrow, row.spark)
    else:
        one = TEXT
    arrow, spark = one.arrow, one.spark
    for _ in range(sql.dimensions):
        arrow, spark = f"list<element: {arrow}>", f"array<{spark}>"
    return ColumnType(one.reading, arrow, spark, sql.dimensions, _DELIMITERS.get(sql.name, ","))


def _numeric(precision: int, scale: int = 0) -> ColumnType:
    """The column of a numeric(precision, scale); a value has at most precision - scale digits before the point."""
    digits, after = max(precision, scale, precision - scale), max(scale, 0)
    if not 1 <= digits <= MAX_DIGITS:
        return TEXT
    return ColumnType("decimal", f"decimal128({digits}, {after})", f"decimal({digits},{after})")


_BUILT_IN = frozenset(SQL_NAMES.values())


def types_table() -> str:
    """The table as docs/types.md prints it, in Markdown."""
    lines = ["| SQL type | Arrow | Spark | what fits |", "|---|---|---|---|"]
    for row in TYPES:
        names = ", ".join(f"`{name}`" for name in row.names) if row.names[0] != "every other type" else row.names[0]
        lines.append(f"| {names} | `{row.arrow}` | `{row.spark}` | {row.policy} |")
    return "\n".join(lines) + "\n"
