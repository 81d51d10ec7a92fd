"""A drawing of boxes, arrows and texts, as an SVG file whose colours follow those of the page or of the system.

Positions and sizes are in pixels. The same calls give the same file.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

LINE = 17
"""From one line of text to the next."""
MONO = 7.25
"""Width of a character of a fixed-width text."""
PADDING = 10

STYLE = """
svg.wf-drawing { --ink: #1f2933; --soft: #5c6b7a; --line: #8796a5; --box: #eef3f7; --warm: #fdf1dc; --mark: #2a6f97;
  background: #fff; }
@media (prefers-color-scheme: dark) { svg.wf-drawing { --ink: #e6edf3; --soft: #9fb0c0; --line: #6b7c8d; --box: #22303c;
  --warm: #3d3320; --mark: #6cb6e0; background: #14181e; } }
.wf-drawing text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); }
.wf-drawing .mono { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.wf-drawing .soft { fill: var(--soft); }
.wf-drawing .head { font-weight: 600; }
.wf-drawing .box { fill: var(--box); stroke: var(--line); }
.wf-drawing .warm { fill: var(--warm); stroke: var(--line); }
.wf-drawing .open { fill: none; stroke: var(--line); stroke-dasharray: 4 3; }
.wf-drawing .mark { fill: none; stroke: var(--mark); stroke-width: 2; }
.wf-drawing .arrow { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.wf-drawing .tip { fill: var(--soft); stroke: none; }
"""


class Drawing:
    """Collects the parts of a drawing."""

    def __init__(self, width: float, title: str) -> None:
        self._width = width
        self._title = title
        self._bottom = 0.0
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str = "box") -> None:
        """A rectangle; its kind is a class of STYLE."""
        self._parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>')
        self._bottom = max(self._bottom, y + height)

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """A line of text; y is its base line."""
        found = f' class="{kind}"' if kind else ""
        self._parts.append(f'<text{found} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>')
        self._bottom = max(self._bottom, y + 4)

    def lines(self, x: float, y: float, lines: Sequence[str], kind: str = "", anchor: str = "start") -> float:
        """Lines of text from y down; returns where the next thing may begin."""
        for line in lines:
            y += LINE
            self.text(x, y - 4, line, kind, anchor)
        return y

    def titled_box(
        self, x: float, y: float, width: float, height: float, head: str, lines: Sequence[str], kind: str = "box"
    ) -> None:
        """A rectangle with a head and lines, centred."""
        self.box(x, y, width, height, kind)
        top = y + (height - LINE * (1 + len(lines))) / 2
        self.lines(x + width / 2, self.lines(x + width / 2, top, [head], "head", "middle"), lines, "soft", "middle")

    def arrow(self, *points: tuple[float, float], kind: str = "arrow") -> None:
        """A line through points with a tip at its end."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._parts.append(f'<polyline class="{kind}" points="{path}"/>')
        (x0, y0), (x, y) = points[-2:]
        across = abs(x - x0) >= abs(y - y0)
        sign = (1 if x > x0 else -1) if across else (1 if y > y0 else -1)
        ends = (
            [(x - 8 * sign, y - 4), (x - 8 * sign, y + 4)] if across else [(x - 4, y - 8 * sign), (x + 4, y - 8 * sign)]
        )
        tip = " ".join(f"{a:g},{b:g}" for a, b in [(x, y), *ends])
        self._parts.append(f'<polygon class="tip" points="{tip}"/>')
        self._bottom = max(self._bottom, *(y for _, y in points))

    def svg(self) -> str:
        """The file."""
        height = self._bottom + PADDING
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="wf-drawing" viewBox="0 0 {self._width:g} {height:g}" '
            f'width="{self._width:g}" height="{height:g}">'
        )
        return "\n".join(
            [head, f"<title>{escape(self._title)}</title>", f"<style>{STYLE}</style>", *self._parts, "</svg>", ""]
        )


def wrapped(words: Sequence[str], width: int, between: str = ", ") -> list[str]:
    """Words in lines of at most `width` characters, if no word is longer."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(between) + len(word) <= width:
            lines[-1] += between + word
        else:
            lines.append(word)
    return [line + between.rstrip() if number < len(lines) else line for number, line in enumerate(lines, 1)]
