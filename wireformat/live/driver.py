"""The database driver, psycopg or gaussdb, which both have a module `pq`; connection strings without their secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import OptionError, needs
from ..options.checks import one_of

DRIVERS = ("psycopg", "gaussdb")

CONNECT_SECONDS = 10
"""The time limit of a connection if neither the connection string, its service nor PGCONNECT_TIMEOUT sets one."""

_SETTINGS = "-c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=3 -c client_min_messages=warning"
"""Settings on which the text of values depends, as PostgreSQL's own subscriptions ask for them; and plugins warn.
They come after the user's own settings, and the last setting of a name counts."""

_KEEPALIVES = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "6"}
"""How soon the kernel treats a server as lost that vanishes during a wait for an answer, unless the user sets it."""

_NO_SSLMODE = "unknown"
"""A value of sslmode that libpq refuses before it looks for the server."""

_SECRETS = ("password", "sslpassword", "oauth_client_secret")
_HOSTS = ("host", "hostaddr", "port", "target_session_attrs", "load_balance_hosts")
"""Parameters that say which servers are tried, and in which order."""

_NAME_BYTES = 63
"""How much of a longer name a server keeps, and repeats."""

_SHOWN = ("service", "host", "hostaddr", "port", "dbname", "user")
MASK = "****"


class Target(NamedTuple):
    """A server, and the driver that connects to it.

    attempts   the connection strings, with passwords, in their order: one for each host or address
    shown      the same for messages: host, port, database and user
    secrets    texts that no message may contain
    seconds    the time limit of each attempt; libpq itself leaves that to its blocking functions
    pq         the driver's module `pq`
    """

    attempts: tuple[str, ...]
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
    """Returns the server that a connection string or URL of libpq names.

    driver       psycopg or gaussdb
    parameters   take precedence over those of the string

    `service=…`, PGPASSFILE and the other variables of libpq work. The timeouts of this module are only defaults. The
    settings that decoding needs are added to the parameter `options`. Raises OptionError, whose text contains nothing
    of the string, and MissingExtra.
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
    known = _known(pq, conninfo.make_conninfo, given)
    secrets = {known.get(name, "") for name in _SECRETS} | {os.environ.get("PGPASSWORD", "")}
    for name in {known.get(name, "") for name in ("dbname", "user")}:
        if set(name) & set(":="):  # a connection string in a wrong place may have a password
            secrets |= {name, name.encode()[:_NAME_BYTES].decode("utf-8", "ignore")}
    found = {
        "fallback_application_name": "wireformat",
        **{name: value for name, value in _KEEPALIVES.items() if name not in known},
        **given,
        "client_encoding": "UTF8",
        "options": " ".join(filter(None, (known.get("options"), _SETTINGS))),
        **parameters,
    }
    shown = " ".join(f"{name}={given[name]}" for name in _SHOWN if given.get(name))
    hosts = {name: known[name] for name in _HOSTS if name in known}
    names, attempts = hosts.get("host", ""), [found]
    if (names or "hostaddr" in hosts) and "@" not in names:  # a socket without a file, which the driver does not know
        with suppress(Exception):  # libpq says what is wrong with them
            attempts = conninfo.conninfo_attempts({**found, **hosts})
    target = Target(
        tuple(conninfo.make_conninfo("", **one) for one in attempts),
        shown or "the default server",
        _masks(secrets),
        _seconds(known.get("connect_timeout")) * (1 if len(attempts) > 1 else names.count(",") + 1),
        pq,
    )
    return target._replace(shown=target.masked(target.shown))


def _known(pq: Any, make_conninfo: Any, given: Mapping[str, Any]) -> dict[str, str]:
    """Returns the parameters that libpq takes from a connection string, its service and the environment.

    Only a connection has all of them. This one ends before it looks for the server. The package gaussdb gives only the
    `options` of a service that the string names.
    """
    known = {name: str(value) for name, value in given.items()}
    attempt = pq.PGconn.connect_start(make_conninfo("", **{**known, "sslmode": _NO_SSLMODE}).encode())
    try:
        return {**known, **_values(attempt.info)}
    except NotImplementedError:
        defaults = _values(pq.Conninfo.get_defaults())
        if "service" in {**defaults, **known}:  # its hosts are not known here
            defaults = {name: value for name, value in defaults.items() if name not in _HOSTS}
        known = {**defaults, **known}
        with suppress(AssertionError):  # the service does not exist, which the connection will report
            known["options"] = attempt.options.decode("utf-8", "replace")
        return known
    finally:
        attempt.finish()


def _values(options: Iterable[Any]) -> dict[str, str]:
    return {one.keyword.decode(): one.val.decode("utf-8", "replace") for one in options if one.val}


def server_version(connection: Any) -> int:
    """Returns the version of a connection's server, as 180002 for 18.2 and 90204 for 9.2.4.

    It is taken from what the server reports when a connection begins; the package gaussdb would make a query for it.
    """
    numbers = re.match(
        r"(\d+)(?:\.(\d+))?(?:\.(\d+))?", (connection.parameter_status(b"server_version") or b"").decode()
    )
    major, middle, minor = (int(number or 0) for number in numbers.groups()) if numbers else (0, 0, 0)
    return major * 10_000 + (middle if major >= 10 else middle * 100 + minor)


def _masks(secrets: set[str]) -> tuple[str, ...]:
    """Returns the texts to mask, the longest first: one may be a part of another."""
    return tuple(sorted((secret for secret in secrets if secret), key=len, reverse=True))


def _seconds(timeout: object) -> float:
    """Returns the time limit of an attempt to connect. 0 means no limit."""
    try:
        seconds = float(str(timeout)) if timeout else CONNECT_SECONDS
    except ValueError:  # libpq says what is wrong with it
        seconds = CONNECT_SECONDS
    return seconds if seconds > 0 else 1e6
