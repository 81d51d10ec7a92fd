"""Trees as HTML for a notebook. Everything that comes from the wire is escaped."""

from __future__ import annotations

from html import escape

from .nodes import Node
from .rows import error_lines, rows

MOST_ROWS = 2000
"""How many rows a notebook shows; more would slow it down."""

_STYLE = (  # Without a background of its own: the one red reads on white and on nearly black.
    "<style>.wireformat-tree{font-family:monospace;font-size:12px;border-collapse:collapse}"
    ".wireformat-tree td{text-align:left;padding:1px 8px;white-space:pre;vertical-align:top}"
    ".wireformat-tree .rule{opacity:.65}.wireformat-tree .value{font-weight:bold}"
    ".wireformat-tree .bad{color:#e02f3a}</style>"
)


def fragment(message: bytes, records: list[Node]) -> str:
    """A table of some records of a message."""
    lines: list[str] = []
    for record in records:
        for row in rows(message, record):
            if len(lines) >= MOST_ROWS:
                break
            name = "  " * row.depth + row.node.name
            cells = (
                ("", row.offset),
                ("", row.hex),
                ("", row.text),
                ("", name),
                ("value", row.value),
                ("rule", row.node.rule),
            )
            kind = ' class="bad"' if row.node.error is not None and row.node.is_leaf else ""
            path = escape(row.node.path, quote=True)
            shown = "".join(f'<td class="{of}">{escape(text)}</td>' for of, text in cells)
            lines.append(f'<tr title="{path}"{kind}>{shown}</tr>')
        if record.error is not None:
            lines += [
                f'<tr class="bad"><td colspan="6">{escape(line)}</td></tr>'
                for line in error_lines(message, record.error)
            ]
    more = "<p>There are more rows: inspect one record with record=…</p>" if len(lines) >= MOST_ROWS else ""
    return f'{_STYLE}<table class="wireformat-tree">{"".join(lines)}</table>{more}'
