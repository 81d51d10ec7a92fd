"""The drawings of the ideas: from bytes to tables, relations and values, chunks of a stream."""

from __future__ import annotations

from collections.abc import Iterator

import wireformat as wf

from .svg import LINE, Drawing

WIDTH = 860


def idea_drawings() -> Iterator[tuple[str, str]]:
    """Yields the name and the content of each drawing."""
    yield "bytes.svg", _bytes()
    yield "relations.svg", _relations()
    yield "chunks.svg", _chunks()


def _bytes() -> str:
    drawing = Drawing(WIDTH, "From bytes to tables")
    wide, high = 144, 62
    columns = [6, 180, 354, 528, 702]
    upper, lower, last = 14, 120, 226
    middle = high / 2
    drawing.titled_box(columns[0], upper, wide, high, "messages", ["files, topics,", "slots, columns"], "warm")
    drawing.titled_box(columns[1], upper, wide, high, "framing", ["where records", "begin and end"])
    drawing.titled_box(columns[2], upper, wide, high, "declaration", ["reads and writes,", "names each error"])
    drawing.titled_box(columns[3], upper, wide, high, "events", ["one Python object", "for each record"], "warm")
    drawing.titled_box(columns[1], lower, wide, high, "scan", ["compiled; notes", "where texts are"])
    drawing.titled_box(columns[2], lower, wide, high, "gather", ["copies the columns", "that you ask for"])
    drawing.titled_box(columns[3], lower, wide, high, "row changes", ["the same columns", "for every format"], "warm")
    drawing.titled_box(columns[4], lower, wide, high, "Spark, files", ["DataFrames, SQL,", "CSV, JSON lines"], "warm")
    drawing.titled_box(columns[1], last, wide, high, "transactions", ["what was", "committed, in order"])
    drawing.titled_box(columns[2], last, wide, high, "typed tables", ["real column types,", "over time"], "warm")
    drawing.titled_box(columns[3], last, wide, high, "latest", ["the table", "as it stands"], "warm")
    drawing.titled_box(columns[4], last, wide, high, "lake", ["Parquet files,", "Delta tables"], "warm")
    for left, right, y in [
        (0, 1, upper), (1, 2, upper), (2, 3, upper), (1, 2, lower), (2, 3, lower), (3, 4, lower),
        (1, 2, last), (2, 3, last), (3, 4, last),
    ]:  # fmt: skip
        drawing.arrow((columns[left] + wide, y + middle), (columns[right], y + middle))
    drawing.arrow((columns[0] + 68, upper + high), (columns[0] + 68, lower + middle), (columns[1], lower + middle))
    drawing.arrow((columns[1] + 68, lower + high), (columns[1] + 68, last))
    corner = columns[2] + 68
    drawing.arrow((columns[1] + 112, lower), (columns[1] + 112, 98), (corner, 98), (corner, upper + high))
    drawing.text(corner + 8, 102, "a record that the scan does not expect", "soft")
    return drawing.svg()


ORDERS = wf.TupleData(("id", "note"), ("1", "tea"), ("integer", "text"))
OTHER = wf.TupleData(("id", "note"), ("7", "cup"), ("integer", "text"))
CELLS = 25
"""Bytes in a line."""


def _relations() -> str:
    """Two rows of a table as gaussdb-binary: bytes that are equal in both, and those of the values."""
    first, second = (
        next(iter(wf.encode([wf.Insert(lsn=7, table_schema="shop", table_name="orders", new=row)], "gaussdb-binary")))
        for row in (ORDERS, OTHER)
    )
    is_value = [one != other for one, other in zip(first, second, strict=True)]
    drawing = Drawing(WIDTH, "Relations and values")
    y = 8.0
    heads = ["A row: the scan reads it in full, and learns the relation", "The next row: compared with it"]
    for head, message in zip(heads, (first, second), strict=True):
        y = drawing.lines(10, y, [head], "head") + 4
        for begin in range(0, len(message), CELLS):
            for index, byte in enumerate(message[begin : begin + CELLS]):
                x = 10 + 33 * index
                drawing.box(x, y, 31, 34, "warm" if is_value[begin + index] else "box")
                drawing.text(x + 15, y + 15, f"{byte:02X}", "mono", "middle")
                shown = chr(byte) if 32 < byte < 127 else "·"
                drawing.text(x + 15, y + 29, shown, "mono soft", "middle")
            y += 38
        y += 8
    drawing.titled_box(10, y, 410, 60, "relation 0", ["shop.orders (id integer, note text)"])
    drawing.titled_box(440, y, 410, 60, "values", ["row 0: 1, tea; row 1: 7, cup"], "warm")
    return drawing.svg()


TRANSACTIONS = [
    ("A", [(0.1, 0.28)], "delivered by its own task"),
    ("B", [(0.2, 0.31), (0.44, 0.55), (0.72, 0.8)], "streamed in blocks, committed: delivered"),
    ("C", [(0.38, 0.5), (0.6, 0.7)], "streamed, then rolled back: dropped"),
    ("D", [(0.86, 0.97)], "has not ended: open"),
]
"""Transactions, where their records are in the stream, and their fate."""
CHUNKS = 3


def _chunks() -> str:
    drawing = Drawing(WIDTH, "Chunks of a stream")
    left, width, top = 40, 500, 34
    chunk = width / CHUNKS
    bottom = top + 40 * len(TRANSACTIONS)
    for number in range(CHUNKS):
        drawing.box(left + number * chunk, top - 4, chunk - 4, bottom - top + 8, "open")
        drawing.text(left + (number + 0.5) * chunk, top - 12, f"chunk {number}: a task", "soft", "middle")
    y = top
    for name, blocks, fate in TRANSACTIONS:
        drawing.text(14, y + 22, name, "head")
        for begin, end in blocks:
            for a, b in _cut(begin, end):
                drawing.box(left + a * width, y + 8, (b - a) * width - 2, 22, "warm")
        drawing.text(left + width + 16, y + 22, fate, "soft")
        y += 40
    y += 36
    for number in range(CHUNKS):
        x = left + (number + 0.5) * chunk
        drawing.arrow((x, bottom + 8), (x, y))
    drawing.text(left + chunk / 2 + 8, bottom + 26, "control records", "soft")
    drawing.titled_box(
        left, y, width - 4, 3 * LINE, "the driver", ["goes through them in order, finds what is delivered"]
    )
    drawing.arrow((left + width - 4, y + 25), (left + width + 36, y + 25))
    drawing.lines(
        left + width + 44,
        y,
        ["each task then returns the rows", "that are delivered, with the facts", "of their transactions"],
        "soft",
    )
    return drawing.svg()


def _cut(begin: float, end: float) -> Iterator[tuple[float, float]]:
    """A range cut at the bounds of the chunks."""
    for number in range(CHUNKS):
        a, b = max(begin, number / CHUNKS), min(end, (number + 1) / CHUNKS)
        if a < b:
            yield a, b
