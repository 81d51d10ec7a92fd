"""The extras of this package: what each brings, and the error if it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import MissingExtra

PACKAGES = {
    "cli": ("rich", "typer"),
    "spark": ("google", "pandas", "pyspark"),
    "delta": ("deltalake",),
    "postgres": ("psycopg",),
}
"""The modules of each extra that this package or its examples import."""


@contextmanager
def needs(extra: str, user: str) -> Iterator[None]:
    """Wraps the import of what an extra brings, for a part of this package; raises MissingExtra."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").split(".")[0] not in PACKAGES[extra]:
            raise
        raise MissingExtra(
            f"{user} needs the extra {extra}: pip install 'wireformat[{extra}]' ({error})", name=error.name
        ) from None
