"""The database driver, psycopg or gaussdb, which both have a module `pq`; connection strings without their secrets."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import OptionError
from ..extras import needs
from ..options.checks import one_of

DRIVERS = ("psycopg", "gaussdb")

CONNECT_SECONDS = 10
"""How long a connection may take, where neither the connection string nor PGCONNECT_TIMEOUT says it."""

_SETTINGS = "-c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=3 -c client_min_messages=warning"
"""Settings on which the text of values depends, as PostgreSQL's own subscriptions ask for them; and plugins warn."""

_KEEPALIVES = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "6"}
"""So soon the kernel takes a server for lost that is gone without a word while an answer is waited for."""

_SECRETS = ("password", "sslpassword", "oauth_client_secret")
_SHOWN = ("service", "host", "hostaddr", "port", "dbname", "user")
MASK = "****"


class Target(NamedTuple):
    """A server, and the driver that connects to it.

    conninfo   the connection string, with passwords
    shown      the same for messages: host, port, database and user
    secrets    texts that no message may contain
    seconds    how long a connection may take
    pq         the driver's module `pq`
    """

    conninfo: str
    shown: str
    secrets: tuple[str, ...]
    seconds: float
    pq: Any

    def __repr__(self) -> str:
        return f"Target({self.shown})"

    def with_secret(self, secret: str) -> Target:
        """Returns the same with one more text that no message may contain."""
        return self if not secret or secret in self.secrets else self._replace(secrets=_masks({*self.secrets, secret}))

    def masked(self, text: str) -> str:
        """Returns a text without the passwords of this connection."""
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return " ".join(text.split())


def find_target(dsn: Any, driver: str, **parameters: str) -> Target:
    """Returns the server that a connection string or URL of libpq names. `service=…` and PGPASSFILE work.

    driver       psycopg or gaussdb
    parameters   take precedence over those of the string

    Raises OptionError, whose text has nothing of the string, and MissingExtra.
    """
    name = one_of("driver", driver, DRIVERS)
    if not isinstance(dsn, str):
        raise OptionError(f"option dsn: expected a connection string or URL, got {type(dsn).__name__}")
    if name == "psycopg":
        with needs("postgres", "a live slot"):
            import psycopg  # noqa: F401 - to say which extra is missing
    try:
        pq, conninfo = import_module(f"{name}.pq"), import_module(f"{name}.conninfo")
    except ImportError:
        raise OptionError(f"option driver: the package {name} is not installed: pip install {name}") from None
    try:
        given = conninfo.conninfo_to_dict(dsn)
    except Exception:  # its text may have a part of the string, and so of a password
        raise OptionError(
            "option dsn: expected a connection string such as 'host=db.example dbname=shop user=reader' or "
            "postgresql://reader@db.example/shop, got another text (not shown here, since it may have a password)"
        ) from None
    secrets = {str(given[name]) for name in _SECRETS if given.get(name)} | {os.environ.get("PGPASSWORD", "")}
    options = " ".join(filter(None, (given.get("options") or os.environ.get("PGOPTIONS"), _SETTINGS)))
    found = {
        "application_name": "wireformat",
        **_KEEPALIVES,
        **given,
        "client_encoding": "UTF8",
        "options": options,
        **parameters,
    }
    shown = " ".join(f"{name}={given[name]}" for name in _SHOWN if given.get(name))
    return Target(
        conninfo.make_conninfo("", **found),
        shown or "the default server",
        _masks(secrets),
        _seconds(given.get("connect_timeout") or os.environ.get("PGCONNECT_TIMEOUT"), str(given.get("host"))),
        pq,
    )


def _masks(secrets: set[str]) -> tuple[str, ...]:
    """Returns the texts to mask, the longest first: one may be a part of another."""
    return tuple(sorted((secret for secret in secrets if secret), key=len, reverse=True))


def _seconds(timeout: object, hosts: str) -> float:
    """Returns how long a connection may take; of several hosts, each may take so long. 0 is for ever."""
    try:
        seconds = float(str(timeout)) if timeout else CONNECT_SECONDS
    except ValueError:  # libpq says what is wrong with it
        seconds = CONNECT_SECONDS
    return (seconds if seconds > 0 else 1e6) * (hosts.count(",") + 1)
