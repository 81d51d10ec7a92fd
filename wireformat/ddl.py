"""DDL templates: the SQL of a statement, out of a format string and its arguments.

A server that decodes DDL sends a statement as a JSON object. Its `fmt` is copied; `%{name}x` in it stands for the
member of that name, printed by the conversion x; `%{name:sep}x` for an array, whose elements are joined by sep without
those that print nothing; `%%` for one %. Source: GaussDB document "Logical Decoding Options", enable-ddl-json-format;
openGauss's deparsed commands, whose captures hold templates with the SQL that the server made of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import cycle, takewhile
from types import NoneType
from typing import Any, NoReturn

from .errors import BadTemplate, LimitExceeded
from .identifiers import quote_identifier
from .limits import DDL_CHARACTERS, DDL_DEPTH, DDL_DIGITS, DDL_ELEMENTS, PATH_CHARACTERS

__all__ = ["to_sql"]

_ELEMENT = re.compile(r"%(?:(%)|\{([^}:]+)(?::([^}]*))?\}(.)|)", re.DOTALL)
"""A second percent sign, or name, separator and conversion; none of them: a percent sign that nothing allows."""

_JSON_TYPES: tuple[tuple[Any, str], ...] = (
    (bool, "boolean"),  # before the numbers: Python's bool is one
    (str, "string"),
    ((int, float, Decimal), "number"),
    (Mapping, "object"),
    ((list, tuple), "array"),
    (type(None), "null"),
)

_SCHEMA = ("schemaname", "schema_name")  # as openGauss and as GaussDB name them
_OBJECT = ("objname", "object_name")
_TYPE = ("typename", "type_name")

_TAG_LETTERS = "_XYZZYX_"

_Path = tuple[str, ...]


def to_sql(content: str | bytes | Mapping[str, Any]) -> str:
    """Returns the SQL of a DDL template.

    content     JSON text (bytes: UTF-8), or what it parses to; the template itself, or `{"JDDL": template}`. The text
                may end in a zero byte, as in openGauss's pgoutput
    Raises BadTemplate, which names the element; LimitExceeded where a template is too deep or prints too much.
    """
    if not isinstance(content, (str, bytes, bytearray, Mapping, list, int, float, NoneType)):
        raise TypeError(f"content: expected JSON text or what it parses to, got {type(content).__name__}")
    given: Any = _parsed(content) if isinstance(content, (str, bytes, bytearray)) else content
    if isinstance(given, Mapping) and "JDDL" in given and "fmt" not in given:
        given = given["JDDL"]
    sql = _Expansion().template(given, (), 0)
    try:
        sql.encode()
    except UnicodeEncodeError:
        _fail("characters", "half of a surrogate pair", ())
    return sql


class _Expansion:
    """Prints one template, and counts what it prints: a short template can refer to itself a billion times."""

    def __init__(self) -> None:
        self._elements = 0
        self._characters = 0

    def template(self, value: Any, path: _Path, depth: int) -> str:
        """An object, by its own format string."""
        if depth > DDL_DEPTH:
            raise LimitExceeded(f"limits.DDL_DEPTH is {DDL_DEPTH}, the DDL template is deeper at {_shown(path)}")
        fmt: str = _member(value, ("fmt",), "string", path)
        printed: list[str] = []
        end = 0
        for found in _ELEMENT.finditer(fmt):
            percent, name, separator, conversion = found.groups()
            if not percent and not name:
                at = len(fmt[: found.start()].encode(errors="replace"))
                _fail("%% or %{name}x", "a % before something else", (*path, ".fmt"), field_offset=at)
            printed.append(fmt[end : found.start()])
            printed.append(percent or self._element(value, name, separator, conversion, path, depth))
            end = found.end()
        return "".join([*printed, fmt[end:]])

    def _element(
        self, template: Any, name: str, separator: str | None, conversion: str, path: _Path, depth: int
    ) -> str:
        if conversion not in _CONVERSIONS:
            _fail(f"a conversion, one of {' '.join(_CONVERSIONS)}", repr(conversion), (*path, f".{name}"))
        value = _member(template, (name,), "array" if separator is not None else None, path)
        path = (*path, f".{name}")
        if separator is None:
            return self._converted(value, conversion, path, depth)
        parts = [self._converted(item, conversion, (*path, f"[{place}]"), depth) for place, item in enumerate(value)]
        parts = list(filter(None, parts))
        self._count(len(separator) * len(parts))
        return separator.join(parts)

    def _converted(self, value: Any, conversion: str, path: _Path, depth: int) -> str:
        self._elements += 1
        if self._elements > DDL_ELEMENTS:
            raise LimitExceeded(
                f"limits.DDL_ELEMENTS is {DDL_ELEMENTS}, the DDL template prints more at {_shown(path)}"
            )
        text = _CONVERSIONS[conversion](self, value, path, depth)
        self._count(len(text))
        return text

    def _count(self, characters: int) -> None:
        self._characters += characters
        if self._characters > DDL_CHARACTERS:
            raise LimitExceeded(f"limits.DDL_CHARACTERS is {DDL_CHARACTERS}, the DDL template prints more")


def _text(expansion: _Expansion, value: Any, path: _Path, depth: int) -> str:
    """A string as it is; an object by its own format string, but nothing if it is not present."""
    if isinstance(value, str):
        return value
    _check_type(value, "object", path, "a string or an object")
    return expansion.template(value, path, depth + 1) if _member(value, ("present",), "boolean", path, True) else ""


def _identifier(expansion: _Expansion, value: Any, path: _Path, depth: int) -> str:
    _check_type(value, "string", path)
    return quote_identifier(value)


def _dotted_name(expansion: _Expansion, value: Any, path: _Path, depth: int) -> str:
    parts = (
        _member(value, _SCHEMA, "string", path, None),
        _member(value, _OBJECT, "string", path),
        _member(value, ("attrname",), "string", path, None),
    )
    return ".".join(quote_identifier(part) for part in parts if part is not None)


def _type_name(expansion: _Expansion, value: Any, path: _Path, depth: int) -> str:
    """With an empty schema the name is in words that quotes would spoil, as `timestamp with time zone`."""
    schema = _member(value, _SCHEMA, "string", path, None)
    name = _member(value, _TYPE, "string", path)
    if schema != "":
        name = ".".join(quote_identifier(part) for part in (schema, name) if part is not None)
    brackets = "[]" if _member(value, ("typarray",), "boolean", path, False) else ""
    return f"{name}{_member(value, ('typmod',), 'string', path, '')}{brackets}"


def _literal(expansion: _Expansion, value: Any, path: _Path, depth: int) -> str:
    """In single quotes, or if there is a quote or a backslash in it between dollar quotes.

    The tag is as long as it must be for `$` and the tag not to occur in the text, as openGauss makes it.
    """
    _check_type(value, "string", path)
    if "'" not in value and "\\" not in value:
        return f"'{value}'"
    runs = (takewhile(lambda pair: pair[0] == pair[1], zip(part, cycle(_TAG_LETTERS))) for part in value.split("$")[1:])
    longest = max((sum(1 for _ in run) for run in runs), default=-1)
    tag = "".join(letter for letter, _ in zip(cycle(_TAG_LETTERS), range(longest + 1)))
    return f"${tag}${value}${tag}$"


def _number(expansion: _Expansion, value: Any, path: _Path, depth: int) -> str:
    """As the server's type numeric prints it: all digits, no exponent."""
    _check_type(value, "number", path)
    number = Decimal(repr(value) if isinstance(value, float) else value)
    if not number.is_finite() or abs(number.adjusted()) > DDL_DIGITS:
        _fail(f"a number of at most {DDL_DIGITS} digits", "another one", path)
    return f"{number:f}"


_CONVERSIONS: dict[str, Callable[[_Expansion, Any, _Path, int], str]] = {
    "s": _text,
    "I": _identifier,
    "D": _dotted_name,
    "T": _type_name,
    "L": _literal,
    "n": _number,
}

_REQUIRED = object()


def _member(value: Any, names: tuple[str, ...], json_type: str | None, path: _Path, absent: Any = _REQUIRED) -> Any:
    """The member of an object by the first of these names that it has."""
    _check_type(value, "object", path)
    for name in names:
        if name in value:
            if json_type is not None:
                _check_type(value[name], json_type, (*path, f".{name}"))
            return value[name]
    if absent is _REQUIRED:
        _fail("an element of this name", "none", (*path, f".{names[0]}"))
    return absent


def _check_type(value: Any, json_type: str, path: _Path, expected: str | None = None) -> None:
    found = next((name for types, name in _JSON_TYPES if isinstance(value, types)), type(value).__name__)
    if found != json_type:
        _fail(expected or _with_article(json_type), _with_article(found), path)


def _with_article(word: str) -> str:
    return word if word == "null" else f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _parsed(text: str | bytes | bytearray) -> Any:
    try:
        if not isinstance(text, str):
            text = text.decode()
        text = text.removesuffix("\0")
        return json.loads(text, parse_int=Decimal, parse_float=Decimal, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        _fail("UTF-8", "other bytes", (), field_offset=error.start)
    except json.JSONDecodeError as error:
        at = len(error.doc[: error.pos].encode(errors="replace"))
        _fail("JSON", "text that is none", (), field_offset=at)
    except ArithmeticError:
        _fail(f"numbers of at most {DDL_DIGITS} digits", "another one", ())
    except RecursionError:
        raise LimitExceeded(f"limits.DDL_DEPTH is {DDL_DEPTH}, the JSON of the DDL template is deeper") from None


def _no_number(word: str) -> NoReturn:
    _fail("JSON", f"the word {word}", ())


def _fail(expected: str, got: str, path: _Path, **where: Any) -> NoReturn:
    raise BadTemplate(expected, got, format="JDDL", path=_shown(path) or None, **where)


def _shown(path: _Path) -> str:
    text = "".join(path).removeprefix(".")
    return text if len(text) <= PATH_CHARACTERS else f"{text[:PATH_CHARACTERS]}..."


def __dir__() -> list[str]:
    return __all__
