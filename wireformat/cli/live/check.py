"""`wireformat check`: checks, creates or drops a slot."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from ... import lake, live
from ...printable import printable
from ..exits import BAD_DATA, Failed
from ..screen import print_lines, say


def check(
    dsn: str,
    *,
    slot: str,
    publication: Sequence[str] | None,
    folder: str | None,
    via: str,
    driver: str,
    as_json: bool = False,
) -> None:
    """Prints a line for each finding. Raises Failed if no stream can start, and what `live.check` raises."""
    position = None if folder is None else lake.position(folder)
    found = live.check(dsn, slot=slot, publication=publication or None, position=position, via=via, driver=driver)
    if as_json:
        print_lines(finding._asdict() for finding in found)
    else:
        for finding in found:
            typer.echo(printable(str(finding)))
    errors = sum(finding.level == "error" for finding in found)
    if errors:
        raise Failed(f"{errors} of {len(found)} checks keep the stream from starting", BAD_DATA)


def create(dsn: str, slot: str, *, plugin: str, failover: bool, via: str, driver: str) -> None:
    """Creates the slot, and says what the server waits for. Raises what `live.create_slot` raises."""

    def tell(text: str) -> None:
        say(f"creating the slot: {text}")

    live.create_slot(dsn, slot, plugin=plugin, failover=failover, via=via, driver=driver, on_wait=tell)
    say(f"created slot {slot}")


def drop(dsn: str, slot: str, *, via: str, driver: str) -> None:
    """Drops the slot. Raises what `live.drop_slot` raises."""
    live.drop_slot(dsn, slot, via=via, driver=driver)
    say(f"dropped slot {slot}")
