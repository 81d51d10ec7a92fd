"""SQL identifiers as the servers quote them: quote, unquote, and split a qualified name."""

from __future__ import annotations

import re

PLAIN_NAME = "[a-z_][a-z0-9_]*"
"""A name that needs no quotes, unless it is a keyword: a regular expression, ASCII only."""

_PLAIN = re.compile(PLAIN_NAME)
_PART = re.compile(r'"((?:[^"]|"")*)"|(\*|[^."*]+)')
_ITEM = re.compile(r'(?:"[^"]*"|[^,"])+')
_STAR_INSIDE = re.compile(r'[^."]\*|\*[^."]')

# Keywords that are not unreserved, which quote_identifier() puts in quotes: openGauss, src/include/parser/kwlist.h at
# commit 0eda63f6e151, categories RESERVED, COL_NAME and TYPE_FUNC_NAME. The list differs a little between releases, so
# only writing looks at it; reading takes any name, quoted or not.
KEYWORDS = frozenset(
    """
    all analyse analyze and any array as asc asymmetric authid authorization between bigint binary binary_double
    binary_double_infinity binary_double_nan binary_integer bit boolean both bucketcnt buckets byteawithoutorder
    byteawithoutorderwithequal case cast char character check coalesce collate collation column compact concurrently
    constraint create cross csn current_catalog current_date current_role current_schema current_time current_timestamp
    current_user date dec decimal decode default deferrable deltamerge desc distinct do else end except excluded exists
    extract false fetch float for foreign freeze from full grant greatest group grouping groupparent having
    hdfsdirectory ilike imcstored in initially inner inout int integer intersect interval into is join json_exists
    leading least left less like limit localtime localtimestamp minus modify national natural nchar nocycle none not
    notnull nth_value null nullif number numeric nvarchar nvarchar2 nvl offset on only or order out outer overlaps
    overlay performance placing position precision primary procedure real recyclebin references reject returning right
    row rownum select self session_user setof share_memory shrink similar smalldatetime smallint some substring
    symmetric sysdate table tablesample then time timecapsule timestamp timestampdiff tinyint to trailing treat trim
    true unimcstored union unique user using values varchar varchar2 variadic verbose verify when where window with
    xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlparse xmlpi xmlroot xmlserialize
    """.split()  # noqa: SIM905 - a list literal would take 150 lines
)

# The same of PostgreSQL 18, src/include/parser/kwlist.h. Older releases have fewer: 16 lacks json and words of JSON.
POSTGRES_KEYWORDS = frozenset(
    """
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast
    char character check coalesce collate collation column concurrently constraint create cross current_catalog
    current_date current_role current_schema current_time current_timestamp current_user dec decimal default deferrable
    desc distinct do else end except exists extract false fetch float for foreign freeze from full grant greatest group
    grouping having ilike in initially inner inout int integer intersect interval into is isnull join json json_array
    json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize json_table json_value
    lateral leading least left like limit localtime localtimestamp merge_action national natural nchar none normalize
    not notnull null nullif numeric offset on only or order out outer overlaps overlay placing position precision
    primary real references returning right row select session_user setof similar smallint some substring symmetric
    system_user table tablesample then time timestamp to trailing treat trim true union unique user using values varchar
    variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces
    xmlparse xmlpi xmlroot xmlserialize xmltable
    """.split()  # noqa: SIM905
)


def quote_identifier(name: str, keywords: frozenset[str] = KEYWORDS) -> str:
    """Returns a name as the server prints it: bare if it is plain and not a keyword, otherwise in double quotes."""
    if _PLAIN.fullmatch(name) and name not in keywords:
        return name
    return '"' + name.replace('"', '""') + '"'


def unquote_identifier(text: str) -> str:
    """Returns the name that a printed identifier means.

    A text that does not begin with a double quote is the name itself. Raises ValueError if a quoted one is not
    closed at its end or holds a single double quote.
    """
    if not text.startswith('"'):
        return text
    inner = text[1:-1]
    if len(text) < 2 or not text.endswith('"') or '"' in inner.replace('""', ""):
        raise ValueError("an identifier that begins with a double quote must be closed by one, inner ones doubled")
    return inner.replace('""', '"')


def split_items(text: str) -> list[str]:
    """Splits a list at the commas outside of double quotes; blanks around the items are not part of them.

    Raises ValueError if a double quote is not closed.
    """
    if text.count('"') % 2:
        raise ValueError(f"a double quote is not closed in {text}; double the quotes inside of a name")
    return [item.strip() for item in _ITEM.findall(text) if item.strip()]


def split_names(text: str) -> list[str]:
    """Splits a list of names, and unquotes those in double quotes; raises ValueError."""
    return [unquote_identifier(item) for item in split_items(text)]


def split_pattern(text: str) -> tuple[str | None, str | None]:
    """Splits `schema.table` into its two names; a part that is a bare * is None.

    A part with a dot or a * in it must be quoted, and so must one that begins or ends with a blank.

    Raises ValueError if the text is not exactly two parts.
    """
    parts = _two_parts(text)
    if parts is None:
        hint = f', or "*.{text}" for every schema'
        raise _not_two_parts(text, hint, ": a * matches a whole part; a name with a * in it is in double quotes")
    return parts


def split_table(text: str) -> tuple[str, str]:
    """Splits the `schema.table` of one table, in which a bare * is not allowed; raises ValueError."""
    parts = _two_parts(text)
    if parts is None:
        raise _not_two_parts(text, "", ": a name with a * in it is in double quotes")
    schema, table = parts
    if schema is None or table is None:
        raise ValueError(f'expected one table, got the pattern "{text}"')
    return schema, table


def _two_parts(text: str) -> tuple[str | None, str | None] | None:
    first = _PART.match(text)
    second = _PART.fullmatch(text, first.end() + 1) if first and text[first.end() : first.end() + 1] == "." else None
    if first is None or second is None or any(part[0] != part[0].strip() for part in (first, second)):
        return None
    schema, table = (None if part[0] == "*" else unquote_identifier(part[0]) for part in (first, second))
    return schema, table


def _not_two_parts(text: str, or_pattern: str, about_star: str) -> ValueError:
    """The error for a text that is not two parts; it says what to write if the text is a name, or has a * in it."""
    hint = f': write "public.{text}"{or_pattern}' if _PART.fullmatch(text) and (text != "*" or or_pattern) else ""
    if _STAR_INSIDE.search(text):
        hint = about_star
    return ValueError(f'expected schema.table, a part with a dot in it in double quotes, got "{text}"{hint}')
