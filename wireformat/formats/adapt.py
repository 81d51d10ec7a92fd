"""Events as far as a format can say them."""

from __future__ import annotations

from ..events import Event
from .differences import DIFFERENCES
from .registry import FORMATS, find_row


def adapted(event: Event, format: str) -> tuple[Event, tuple[str, ...]]:
    """Returns the event as far as the format can say it, and what was changed for that, in words of DIFFERENCES.

    What has no `change` in that table stays; the writer of the format refuses it.
    """
    changed = []
    cannot_say, says = find_row(format).cannot_say, FORMATS[format].says
    for row in DIFFERENCES:
        if row.name in cannot_say and row.change is not None:
            before, event = event, row.change(event, says)
            if event != before:
                changed.append(f"{row.what}: {row.becomes}")
    return event, tuple(changed)
