"""What workers write to their log, since a result has no place for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

SHOWN_GIDS = 20
"""How many gids one line of the log shows."""


def log_unknown_prepared(gids: Sequence[str], where: str) -> None:
    """Warn of prepared transactions whose end came, and which were not prepared before it."""
    if gids:
        more = "" if len(gids) <= SHOWN_GIDS else f" and {len(gids) - SHOWN_GIDS} more"
        shown = ", ".join(map(repr, gids[:SHOWN_GIDS]))
        logging.getLogger(__package__).warning(
            "%s: transactions ended that were not prepared before, nothing is delivered of them: %s%s",
            where,
            shown,
            more,
        )
