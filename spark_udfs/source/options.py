"""The options of a stream from a slot, as Spark hands them over: texts with names in lower case."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

import wireformat as wf
from wireformat.identifiers import split_names
from wireformat.options import MODES
from wireformat.options.checks import number, one_of, shown
from wireformat.options.table import nearest
from wireformat.options.table_names import one_table

ORIGINS = ("any", "none")

_SECRET = re.compile(r"password\s*=|\w+://[^/\s]*:[^/\s]*@", re.IGNORECASE)
"""What a connection string or a URL with a password looks like."""

_SERVICE = re.compile(r"[\w.-]+")


def split_option(option: str, text: str, split: Callable[[str], list[str]] = split_names) -> list[str]:
    """Returns the names between the commas of an option; raises OptionError.

    split   another function of `wireformat.identifiers`
    """
    try:
        return split(text)
    except ValueError as error:
        raise wf.OptionError(f"option {option}: {error}") from None


def names_slot(given: Mapping[str, str]) -> bool:
    """Whether options are those of a slot, and not of files."""
    return not given.keys().isdisjoint(("url", "service", "slot", "publication"))


@dataclass(frozen=True)
class SlotOptions:
    """The options of a stream; see docs/spark_live.md.

    url, service        the server: one of them. `url` is a connection string or a URL of libpq, which Spark redacts
    slot, publication   their names; of publications also several, between commas, those with a comma in double quotes
    table               `public.orders`; None for the changes of all tables
    origin              none: only what was written here, and not what a subscription has brought; needs PostgreSQL 16
    """

    url: str | None = field(default=None, repr=False)
    service: str | None = None
    slot: str = ""
    publication: str = ""
    table: str | None = None
    origin: str | None = None
    mode: str = "FAILFAST"
    driver: str = "psycopg"
    maxbytespertrigger: int = 64 << 20
    maxrowspertrigger: int | None = None
    idleseconds: float = 10.0
    reconnectseconds: float = 60.0

    @classmethod
    def check(cls, given: Mapping[str, str]) -> SlotOptions:
        """Returns the options; raises OptionError, whose text has no value that may be a password."""
        for name, value in given.items():
            if name != "url" and ("password" in name or _SECRET.search(value)):
                raise wf.OptionError(
                    f"option {name}: Spark shows it in plans and logs, and it may have a password; use PGPASSFILE, or "
                    "a service file with the option service, or put the whole connection string into the option url, "
                    "which Spark redacts"
                )
        names = {one.name.lower(): one.name for one in fields(cls)}
        for name in given:
            if name not in names:
                near = nearest(name, [*_SHOWN.values()])
                raise wf.OptionError(f"option {name}: unknown{near}; there are {', '.join(_SHOWN.values())}")
        texts = {name: value for name, value in given.items() if name not in _NUMBERS}
        if "mode" in texts:
            texts["mode"] = one_of("mode", texts["mode"].upper(), MODES)
        found = cls(**texts, **{name: _number(name, given[name]) for name in _NUMBERS if name in given})  # type: ignore[arg-type]
        found._check_server()
        for name in ("slot", "publication"):
            if not getattr(found, name):
                raise wf.OptionError(f'option {name}: a stream needs its name, as in .option("{name}", "…")')
        split_option("publication", found.publication)
        if found.origin is not None:
            one_of("origin", found.origin, ORIGINS)
        if found.table is not None:
            one_table(found.table)
        return found

    def _check_server(self) -> None:
        if (self.url is None) == (self.service is None):
            raise wf.OptionError(
                "option url: expected url, or service with the name of a service of libpq, "
                + ("got both" if self.url is not None else "got neither")
            )
        if self.service is not None and not _SERVICE.fullmatch(self.service):
            raise wf.OptionError(
                "option service: expected the name of a service of libpq, got another text (not shown here, since it "
                "may have a password)"
            )

    @property
    def dsn(self) -> str:
        """The connection string."""
        return self.url if self.url is not None else f"service={self.service}"

    @property
    def publications(self) -> list[str]:
        """The names of the publications."""
        return split_option("publication", self.publication)


_NUMBERS = ("maxbytespertrigger", "maxrowspertrigger", "idleseconds", "reconnectseconds")

_SHOWN = {
    **{one.name: one.name for one in fields(SlotOptions)},
    "maxbytespertrigger": "maxBytesPerTrigger",
    "maxrowspertrigger": "maxRowsPerTrigger",
    "idleseconds": "idleSeconds",
    "reconnectseconds": "reconnectSeconds",
}
"""The options as documentation writes them."""


def _number(name: str, text: str) -> int | float:
    shown_name = _SHOWN[name]
    try:
        if name.endswith("seconds"):
            found = float(text)
            if found >= 0:
                return found
        else:
            return number(shown_name, int(text), 1)
    except ValueError as error:
        if isinstance(error, wf.OptionError):
            raise
    kind = "a number of seconds" if name.endswith("seconds") else "a whole number above 0"
    raise wf.OptionError(f"option {shown_name}: expected {kind}, got {shown(text)}")
