"""Binary values to text, against what servers print: the edges of every type, and random values of each."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from random import Random

import pytest

from wireformat.pgtypes import type_oid
from wireformat.pgtypes.binary import binary_text

from .conftest import Servers
from .installations import MISSING
from .server import Server
from .values import NO_ARRAYS, array_literals, literal, values_of

NOT_READ = {
    *("money", "inet", "cidr", "macaddr", "macaddr8", "tid", "pg_lsn", "regclass", "regtype", "jsonpath"),
    *("point", "line", "lseg", "box", "path", "polygon", "circle", "tsvector", "tsquery"),
    *("int4range", "numrange", "tstzrange", "daterange", "int4multirange"),
}
"""Types whose binary form is kept as it is."""


@pytest.mark.parametrize("version", MISSING)
def test_every_value_of_the_workload(servers: Servers, version: int) -> None:
    """And arrays of them: the same expression asked for in both forms."""
    expressions = [
        (type, expression)
        for type, values in values_of(version).items()
        for expression in [
            *(f"{literal(value)}::{type}" for value in values),
            *(() if type in NO_ARRAYS else array_literals(type, values)),
        ]
    ]
    with servers(version).connect() as session:
        for type, expression in expressions:
            sql = f"select {expression}".encode()
            printed, sent = (session.pgconn.exec_params(sql, None, result_format=form) for form in (0, 1))
            text, value = printed.get_value(0, 0), sent.get_value(0, 0)
            assert text is not None, expression
            assert value is not None, expression
            expected = None if type in NOT_READ else text.decode()
            assert binary_text(sent.ftype(0), value, "utf-8", "strict") == expected, expression


def _floats(layout: str, lowest: int, highest: int) -> Callable[[Random], bytes]:
    """Powers of two and of five, decimals of few digits, and any bits: where shortest digits are hard to find."""

    def draw(random: Random) -> bytes:
        number = random.choice(
            (
                lambda: 2.0 ** random.randint(lowest, highest),
                lambda: float(5 ** random.randint(0, 54)),
                lambda: float(f"{random.randint(1, 999)}e{random.randint(-44, 35)}"),
                lambda: float(random.getrandbits(60)),
            )
        )
        size = struct.calcsize(layout)
        return random.choice((lambda: struct.pack(layout, number()), lambda: random.randbytes(size)))()

    return draw


def _numeric(random: Random) -> bytes:
    groups = [random.choice((0, 1, 10, 1000, 9999, random.randrange(10_000))) for _ in range(random.randrange(8))]
    weight = random.randint(-6, 8)
    scale = max(4 * (len(groups) - weight - 1), 0) + random.randrange(6)  # no digits that the scale hides
    return struct.pack(f">HhHH{len(groups)}H", len(groups), weight, random.choice((0, 0x4000)), scale, *groups)


def _packed(layout: str, *ranges: tuple[int, int]) -> Callable[[Random], bytes]:
    return lambda random: struct.pack(layout, *(random.choice((random.randint(*r), random.choice(r))) for r in ranges))


INT32 = (-(1 << 31), (1 << 31) - 1)
TIMESTAMPS = (-211_813_488_000_000_000, 9_223_371_331_199_999_999)

SCALARS: dict[str, Callable[[Random], bytes]] = {
    "real": _floats(">f", -149, 127),
    "double precision": _floats(">d", -1074, 1023),
    "numeric": _numeric,
    "integer": _packed(">i", INT32),
    "date": _packed(">i", (-2_451_545, 2_145_031_948)),
    "timestamp without time zone": _packed(">q", TIMESTAMPS),
    "timestamp with time zone": _packed(">q", TIMESTAMPS),
    "time without time zone": _packed(">q", (0, 86_400_000_000)),
    "time with time zone": _packed(">qi", (0, 86_400_000_000), (-57_599, 57_599)),
    "interval": _packed(">qii", (-(10**15), 10**15), (-3, 3), (-30, 30)),
    "text": lambda random: "".join(random.choices("aN\"\\{},'\n\v \u2028äulL", k=random.randrange(6))).encode(),
}


def _array(element: str) -> Callable[[Random], bytes]:
    def draw(random: Random) -> bytes:
        dimensions = [(random.randint(1, 3), random.choice((1, 1, 0, -7))) for _ in range(random.randrange(4))]
        count = 1 if dimensions else 0
        for length, _ in dimensions:
            count *= length
        items = [None if random.random() < 0.2 else SCALARS[element](random) for _ in range(count)]
        head = struct.pack(">iiI", len(dimensions), None in items, type_oid(element))
        cells = (struct.pack(">i", -1) if item is None else struct.pack(">i", len(item)) + item for item in items)
        return head + b"".join(struct.pack(">ii", *one) for one in dimensions) + b"".join(cells)

    return draw


RANDOM = SCALARS | {f"{element}[]": _array(element) for element in SCALARS}
COUNT = 2000


@pytest.mark.parametrize("type", RANDOM)
@pytest.mark.parametrize("version", MISSING)
def test_random_values(servers: Servers, version: int, type: str) -> None:
    """Sent to the server in binary form, and printed by it."""
    random = Random(f"{type} 4")
    values = [RANDOM[type](random) for _ in range(COUNT)]
    printed = list(_printed(servers(version), type, values))
    assert len(printed) == COUNT
    for value, text in zip(values, printed, strict=True):
        assert binary_text(type_oid(type), value, "utf-8", "strict") == text, value


def _printed(server: Server, type: str, values: list[bytes]) -> Iterator[str]:
    rows = (struct.pack(">hiii", 2, 4, row, len(value)) + value for row, value in enumerate(values))
    with server.connect() as session:
        session.execute(f"create temporary table random_values (row integer, value {type})")
        with session.cursor().copy("copy random_values from stdin (format binary)") as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"".join(rows) + b"\xff\xff")
        for (text,) in session.execute("select value::text from random_values order by row"):
            yield text
