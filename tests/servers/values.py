"""Values of the built-in types, as SQL literals: the edges of each type, in the text that a server reads."""

from __future__ import annotations

FLOATS = ("0", "-0", "0.1", "-1.5", "1e15", "1e16", "0.0001", "0.00001", "NaN", "Infinity", "-Infinity")

TEXTS = (
    "",
    " ",
    "it's",
    'say "x"',
    "a\\b",
    "two\nlines",
    "tab\there",
    "{curly,}",
    "NULL",
    "null",
    "ä€😀",
    "\u2028",
    "\u0085",
)
"""What quoting rules are about."""

VALUES: dict[str, tuple[str, ...]] = {
    "boolean": ("t", "f"),
    "smallint": ("-32768", "0", "32767"),
    "integer": ("-2147483648", "-1", "2147483647"),
    "bigint": ("-9223372036854775808", "0", "9223372036854775807"),
    "oid": ("0", "1", "4294967295"),
    "real": (*FLOATS, "1e-45", "3.4028235e38", "16777216", "123456.7", "1e6", "999999"),
    "double precision": (
        *FLOATS,
        "5e-324",
        "1.7976931348623157e308",
        "1e300",
        "123456789012345680",
        "0.30000000000000004",
    ),
    "numeric": (
        *("0", "0.00", "1", "-1", "12.30", "-0.001", "10000", "9999", "100000000", "0.0001", "0.00001000", "1e-100"),
        *("1e100", "99999999999999999999.9999", "-12345678901234567890.123456789", "NaN", "Infinity", "-Infinity"),
    ),
    "numeric(10,2)": ("0.00", "-99999999.99", "12.30"),
    '"char"': ("a", "", "'"),
    "name": ("x", 'a "name"', "ä"),
    "text": TEXTS,
    "character varying(20)": TEXTS,
    "character(6)": ("abc", "", "äöü", "'"),
    "bytea": ("\\x", "\\x00ff", "\\x5c27"),
    "uuid": ("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "date": (
        *("2000-01-01", "1999-12-31", "1970-01-01", "2024-02-29", "0001-01-01", "0001-12-31 BC", "4713-01-01 BC"),
        *("0005-02-29 BC", "9999-12-31", "10000-01-01", "5874897-12-31", "infinity", "-infinity"),
    ),
    "time without time zone": ("00:00:00", "24:00:00", "23:59:59.999999", "04:05:06.7"),
    "time with time zone": ("00:00:00+00", "24:00:00-15:59", "12:34:56.7+05:30", "01:02:03.000001-00:00:01"),
    "timestamp without time zone": (
        *("2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "2024-02-29 12:00:00.5", "0001-12-31 23:59:59 BC"),
        *("4713-01-01 00:00:00 BC", "294276-12-31 23:59:59.999999", "infinity", "-infinity"),
    ),
    "timestamp(0) without time zone": ("294276-12-31 23:59:59.999999", "2000-01-01 00:00:00.5"),
    "timestamp(5) with time zone": ("294276-12-31 23:59:59.999999+00", "4713-01-01 00:00:00.000004+00 BC"),
    "time(0) without time zone": ("23:59:59.999999",),
    "time(3) with time zone": ("23:59:59.999999+15:59",),
    "timestamp with time zone": (
        *(
            "2000-01-01 00:00:00+00",
            "1970-01-01 00:00:00.000001+08",
            "0001-01-01 00:00:00+00",
            "0044-03-15 12:00:00+00 BC",
        ),
        *("294276-12-31 23:59:59.999999+00", "infinity", "-infinity"),
    ),
    "interval": (
        *("0", "1 year", "-1 year", "2 years -3 mons", "1 mon 1 day", "-1 days", "-1 day +02:03:04", "00:00:00.000001"),
        *("-00:00:00.5", "100:00:00", "-1 years -2 mons +3 days -04:05:06.789", "178000000 years", "1 day 00:00:01"),
        *("2562047788:00:54.775807", "-2562047788:00:54.775807"),
        *("178956970 years 7 mons", "-178956970 years -8 mons", "-2147483648 days"),
    ),
    "json": ("null", '{"a": [1, 2.50, "x"], "a": "it\'s"}', '"\\u00e4"'),
    "jsonb": ("null", '{"a": [1, 2.50, "x"], "b": "it\'s"}', '"ä"', "[]"),
    "bit(4)": ("1010", "0000"),
    "bit varying(20)": ("", "1", "10101010", "111100001"),
    "money": ("0", "-1234.50", "92233720368547758.07"),
    "inet": ("127.0.0.1", "10.1.2.3/8", "::1", "2001:db8::1/64", "::ffff:1.2.3.4"),
    "cidr": ("10.0.0.0/8", "192.168.1.0/24", "2001:db8::/32"),
    "macaddr": ("08:00:2b:01:02:03",),
    "macaddr8": ("08:00:2b:01:02:03:04:05",),
    "xid": ("0", "4294967295"),
    "cid": ("7",),
    "tid": ("(0,1)", "(4294967295,65535)"),
    "pg_lsn": ("0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"),
    "point": ("(0.1,-2)", "(1e300,NaN)"),
    "line": ("{1,-1,0}",),
    "lseg": ("[(0,0),(1,1.5)]",),
    "box": ("(2,2),(0,0.5)",),
    "path": ("((0,0),(1,1),(2,0))", "[(0,0),(1,1)]"),
    "polygon": ("((0,0),(1,1),(2,0))",),
    "circle": ("<(1,2),3>",),
    "tsvector": ("'a':1A 'b c':2,3", ""),
    "tsquery": ("'a' & !'b'",),
    "jsonpath": ('$."a"[*]',),
    "oidvector": ("1 2 4294967295", ""),
    "int2vector": ("1 -2 3", ""),
    "regclass": ("pg_class", "-"),
    "regtype": ("integer", "character varying"),
    "int4range": ("[1,5)", "empty", "(,)"),
    "numrange": ("[1.10,2.2]", "(,NaN)"),
    "tstzrange": ('["2000-01-01 00:00:00+00",)',),
    "daterange": ("[2000-01-01,infinity)",),
    "int4multirange": ("{[1,3),[5,7)}", "{}"),
}
"""SQL type to values of it; each can be written 'value'::type."""

SINCE = {17: {"interval": ("infinity", "-infinity")}}
"""Values that came with a version."""

NO_ARRAYS = {"oidvector", "int2vector"}
"""Types whose arrays are odd enough to leave out: they are arrays already."""


def values_of(version: int) -> dict[str, tuple[str, ...]]:
    """The values that a server of this version reads."""
    newer = [more for since, more in SINCE.items() if version >= since]
    return {
        type: values + tuple(one for more in newer for one in more.get(type, ())) for type, values in VALUES.items()
    }


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def array_literals(type: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """SQL expressions of arrays: all values and a NULL; empty; two dimensions; a lower bound that is not 1."""
    cells = [literal(value) for value in values]
    first = cells[0]
    return (
        f"array[{', '.join([*cells, 'NULL'])}]::{type}[]",
        f"'{{}}'::{type}[]",
        f"array[[{first}, NULL], [{cells[-1]}, {first}]]::{type}[]",
        f"array_fill({first}::{type}, array[2, 1, 1], array[0, -1, 5])",
    )
