"""Messages that workers log because a result has no column for them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

SHOWN_GIDS = 20
"""The number of gids that one line of the log shows."""


def log_unknown_prepared(gids: Sequence[str], where: str) -> None:
    """Logs the prepared transactions that ended without a known PREPARE."""
    if gids:
        more = "" if len(gids) <= SHOWN_GIDS else f" and {len(gids) - SHOWN_GIDS} more"
        shown = ", ".join(map(repr, gids[:SHOWN_GIDS]))
        logging.getLogger(__package__).warning(
            "%s: transactions ended that were not prepared before, nothing is delivered of them: %s%s",
            where,
            shown,
            more,
        )
