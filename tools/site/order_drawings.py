"""The states of the order tables as drawings, from the table in wireformat/stream/order.py."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase

from wireformat.formats.registry import ROWS
from wireformat.formats.row import ORDERS
from wireformat.stream.order import (
    ALL,
    AREA,
    BEGUN,
    BETWEEN,
    BLOCK,
    BLOCK_BEGUN,
    NEEDS,
    START,
    STATES,
    TABLE,
    TRANSACTION,
    Step,
)

from .svg import LINE, PADDING, Drawing, wrapped

CENTRE = 1
COLUMNS = {BLOCK_BEGUN: 0, BLOCK: 0, AREA: 0, BETWEEN: CENTRE, BEGUN: 2, TRANSACTION: 2}
"""Column of each state; those of one column stand below each other, in this order. START is drawn in BETWEEN."""
BOX, GAP, GAP_BELOW = 200, 210, 58
WORDS = 25
"""Characters of a line that fit into a box or beside it."""
AT_START = "at the start"


class Edge:
    """Records that lead from a state to another one, or to the same, with the same conditions."""

    def __init__(self, source: str, target: str, step: Step, where: str) -> None:
        self.source = source
        self.target = target
        self.kinds = step.kinds
        self.needs = step.needs
        self.where = where


def order_drawings() -> Iterator[tuple[str, str]]:
    """Yields the name and the content of each drawing."""
    for family in ORDERS:
        names = [row.name for row in ROWS.values() if row.order == family]
        yield f"order-{family}.svg", _drawn(list(_edges(family)), f"Order of records: {', '.join(names)}")


def _edges(family: str) -> Iterator[Edge]:
    for step in TABLE:
        if family not in step.families or step.families == ALL:
            continue
        for state in step.states:
            if state == START and BETWEEN in step.states:
                continue
            where = AT_START if state == START else ""
            if state == BETWEEN and START not in step.states:
                where = f"not {AT_START}"
            source = BETWEEN if state == START else state
            yield Edge(source, source if step.next is None else step.next, step, where)


def _drawn(edges: list[Edge], title: str) -> str:
    used = [state for state in COLUMNS if any(state in (edge.source, edge.target) for edge in edges)]
    letters = _letters(edges)
    stays = {state: list(_stays(state, edges, letters)) for state in used}
    first = min(COLUMNS[state] for state in used)
    left = {state: PADDING + (COLUMNS[state] - first) * (BOX + GAP) for state in used}
    sides = [state for state in used if COLUMNS[state] != CENTRE]
    across = {
        state: [(edge, _label(edge, letters)) for edge in edges if {edge.source, edge.target} == {state, BETWEEN}]
        for state in sides
    }
    height: dict[str, float] = {state: LINE * (1 + len(stays[state])) + 2 * PADDING for state in used}
    for state in sides:
        height[state] = max(height[state], sum(LINE * len(label) + 16 for _, label in across[state]) + PADDING)
    top, bottoms = dict[str, float](), dict[int, float]()
    for state in used:
        column = COLUMNS[state]
        top[state] = bottoms[column] + GAP_BELOW if column in bottoms else PADDING + 24
        bottoms[column] = top[state] + height[state]
    height[BETWEEN] = max(bottoms.values()) - top[BETWEEN]
    drawing = Drawing(max(left.values()) + BOX + PADDING, title)
    for state in used:
        drawing.box(left[state], top[state], BOX, height[state], "warm" if state == BETWEEN else "box")
        below = drawing.lines(left[state] + PADDING, top[state] + 6, [state], "head")
        drawing.lines(left[state] + PADDING, below, stays[state], "mono")
    middle = left[BETWEEN] + BOX / 2
    drawing.text(middle + 10, 18, "a stream begins", "soft")
    drawing.arrow((middle, 6), (middle, top[BETWEEN]))
    for state in sides:
        y = top[state] + 4
        for edge, label in across[state]:
            inner = left[BETWEEN] + (BOX if left[state] > left[BETWEEN] else 0)
            outer = left[state] + (0 if left[state] > left[BETWEEN] else BOX)
            y = drawing.lines((inner + outer) / 2, y, label, "mono", "middle") + 4
            ends = (inner, y), (outer, y)
            drawing.arrow(*(ends if edge.source == BETWEEN else reversed(ends)))
            y += 12
    for edge in edges:
        if BETWEEN not in (edge.source, edge.target) and edge.source != edge.target:
            x = left[edge.source] + 20 + 60 * (edge.kinds[0] != "ORIGIN")
            start = top[edge.source] + height[edge.source]
            label = _label(edge, letters) if len(edge.kinds) == 1 else ["those below"]
            drawing.arrow((x, start), (x, top[edge.target]))
            offset = 22 if len(edge.kinds) == 1 else 40
            drawing.lines(x + 6, start + offset - LINE, label, "mono" if len(edge.kinds) == 1 else "soft")
    y = max(bottoms.values()) + PADDING
    anywhere = [kind for step in TABLE if step.families == ALL and step.states == STATES for kind in step.kinds]
    y = drawing.lines(PADDING, y, [f"Anywhere, without effect: {', '.join(anywhere)}."], "soft")
    drawing.lines(PADDING, y, [f"{letter}: {NEEDS[need].text}" for need, letter in letters.items()], "soft")
    return drawing.svg()


def _letters(edges: list[Edge]) -> dict[str, str]:
    needs = dict.fromkeys(need for edge in edges for need in edge.needs)
    return dict(zip(needs, ascii_lowercase, strict=False))


def _label(edge: Edge, letters: dict[str, str]) -> list[str]:
    marks = " " + "".join(letters[need] for need in edge.needs) if edge.needs else ""
    lines = wrapped([kind + marks for kind in edge.kinds], WORDS)
    return [f"{edge.where}:", *lines] if edge.where else lines


def _stays(state: str, edges: list[Edge], letters: dict[str, str]) -> Iterator[str]:
    """The records that do not lead out of a state, as lines."""
    for edge in sorted(edges, key=lambda edge: edge.where):
        if edge.source == edge.target == state:
            yield from _label(edge, letters)
