"""What a connection string, its service and the environment say of a connection, and what is said without them."""

from __future__ import annotations

import os
import socket
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg.conninfo
import pytest
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import wireformat as wf
from wireformat.live.connection import Connection
from wireformat.live.driver import Target, find_target

from .databases import Database, changes_of
from .walsender import Walsender, plays, serving

WAYS = ["dsn", "service", "PGSERVICE", "environment"]
VARIABLES = {"options": "PGOPTIONS", "application_name": "PGAPPNAME", "connect_timeout": "PGCONNECT_TIMEOUT"}
OURS = "-c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=3 -c client_min_messages=warning"


def said(how: str, dsn: str, options: dict[str, str], folder: Path, patch: pytest.MonkeyPatch) -> str:
    """Says the options in one of the ways; returns the connection string."""
    if how == "dsn":
        return make_conninfo(dsn, **options)
    if how == "environment":
        for name, value in options.items():
            patch.setenv(VARIABLES[name], value)
        return dsn
    services = folder / "services"
    services.write_text("[shop]\n" + "".join(f"{name}={value}\n" for name, value in options.items()))
    patch.setenv("PGSERVICEFILE", str(services))
    if how == "PGSERVICE":
        patch.setenv("PGSERVICE", "shop")
        return dsn
    return make_conninfo(dsn, service="shop")


def used(target: Target) -> dict[str, str]:
    """What libpq makes of the connection string of a target."""
    connection = pq.PGconn.connect_start(target.attempts[0].encode())
    try:
        return {one.keyword.decode(): one.val.decode() for one in connection.info if one.val is not None}
    finally:
        connection.finish()


@pytest.mark.parametrize("how", WAYS)
def test_settings_of_the_user_stay(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that decoding needs come after them: of two, the server takes the last one."""
    options = {"options": "-c work_mem=1MB -c datestyle=German", "application_name": "loader"}
    with serving(Walsender(plays([]), end=1)) as server:
        dsn = said(how, server.dsn, options, tmp_path, monkeypatch)
        wf.live.check(dsn, slot="s", publication="p")
    (given,) = server.startups
    assert given["options"] == f"-c work_mem=1MB -c datestyle=German {OURS}"
    assert given["application_name"] == "loader"


def test_what_is_said_where_the_user_says_nothing() -> None:
    with serving(Walsender(plays([]), end=1)) as server:
        wf.live.check(server.dsn, slot="s", publication="p")
    (given,) = server.startups
    assert (given["options"], given["application_name"]) == (OURS, "wireformat")
    target = find_target("host=127.0.0.1 port=1", "psycopg")
    assert target.seconds == 10
    assert used(target)["keepalives_idle"] == "30"


@pytest.mark.parametrize("how", ["dsn", "service", "PGSERVICE"])
def test_keepalives_of_the_user(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"keepalives": "1", "keepalives_idle": "7", "keepalives_count": "2", "tcp_user_timeout": "3000"}
    target = find_target(said(how, "host=127.0.0.1 port=1", options, tmp_path, monkeypatch), "psycopg")
    found = used(target)
    assert {name: found[name] for name in options} == options
    assert found["keepalives_interval"] == "10"


@pytest.mark.parametrize("how", WAYS)
def test_the_timeout_of_the_user(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dsn = said(how, "", {"connect_timeout": "3"}, tmp_path, monkeypatch)
    assert find_target(dsn, "psycopg").seconds == 3


def test_each_host_of_a_service_has_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = {"host": "127.0.0.1,/tmp", "port": "7,8"}
    dsn = said("service", "", {**hosts, "connect_timeout": "3", "sslpassword": "sesame"}, tmp_path, monkeypatch)
    target = find_target(dsn, "psycopg")
    assert target.seconds == 3
    found = [conninfo_to_dict(one) for one in target.attempts]
    assert [(one["host"], one["port"]) for one in found] == [("127.0.0.1", "7"), ("/tmp", "8")]
    assert target.shown == "service=shop"
    assert target.masked("open sesame") == "open ****"


@pytest.mark.parametrize("how", ["dsn", "service"])
def test_a_host_that_never_answers_does_not_use_up_the_time(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel accepts the connection, as of a server that is stopped."""
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        serving(Walsender(plays([]), end=1)) as server,
    ):
        hosts = {"host": "127.0.0.1,127.0.0.1", "port": f"{silent.getsockname()[1]},{server.port}"}
        dsn = said(how, server.dsn if how == "dsn" else "", {**hosts, "connect_timeout": "2"}, tmp_path, monkeypatch)
        with Connection(make_conninfo(dsn, sslmode="disable", gssencmode="disable")) as connection:
            assert connection.version == 18


def test_an_error_names_the_hosts_that_were_tried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(wf.ServerError) as raised:
        Connection(f"host=127.0.0.1,127.0.0.2 port={silent.getsockname()[1]},1 user=a dbname=x connect_timeout=1")
    assert raised.value.is_temporary
    assert 'no answer from "127.0.0.1" within 1 second; ' in str(raised.value)
    assert 'connection to server at "127.0.0.2"' in str(raised.value)


def test_a_service_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said("service", "", {}, tmp_path, monkeypatch)
    with pytest.raises(wf.ServerError, match=r"service=store: definition of service .store. not found"):
        wf.live.check("service=store", slot="s")


@pytest.mark.parametrize("host", ["authentication-db hostaddr=127.0.0.1", "/tmp/permission", "password.invalid"])
def test_the_name_of_a_server_is_not_why_it_fails(host: str) -> None:
    with pytest.raises(wf.ServerError) as raised:
        wf.live.check(f"host={host} port=1 user=password dbname=pg_hba", slot="s")
    assert raised.value.is_temporary


def test_a_style_of_dates_in_the_environment(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """libpq sends PGDATESTYLE after `options`, and the last one counts."""
    monkeypatch.setenv("PGDATESTYLE", "German")
    db.execute("create table u (id int primary key, day date)", "alter publication p add table u")
    lake = tmp_path / "lake"
    db.execute("insert into u values (1, '2025-01-31')")
    db.follow(lake, create_slot=True, snapshot=True)
    db.execute("insert into u values (2, '2025-02-01')")
    db.follow(lake)
    days = [str(row["day"]) for row in changes_of(lake, "public.u").to_pylist()]
    assert days == ["2025-01-31", "2025-02-01"]


def install_gaussdb(patch: pytest.MonkeyPatch) -> None:
    """Makes a package gaussdb as version 1.0.4 is: it asks for the server's version by a query, and has no `info`."""

    class PGconn:
        """A connection of psycopg, whose compiled class makes none of a class that inherits it."""

        def __init__(self, conninfo: bytes) -> None:
            self.__dict__["of_psycopg"] = pq.PGconn.connect_start(conninfo)

        def __getattr__(self, name: str) -> Any:
            if name in ("info", "server_version"):
                raise NotImplementedError
            return getattr(self.of_psycopg, name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(self.of_psycopg, name, value)

        connect_start = classmethod(lambda cls, conninfo: cls(conninfo))

    module = ModuleType("gaussdb.pq")
    own = {"PGconn": PGconn, "Escaping": lambda connection: pq.Escaping(connection.of_psycopg)}
    module.__dict__.update({name: getattr(pq, name) for name in pq.__all__} | own)
    for name, one in (("gaussdb", ModuleType("gaussdb")), (module.__name__, module)):
        patch.setitem(sys.modules, name, one)
    patch.setitem(sys.modules, "gaussdb.conninfo", psycopg.conninfo)


@pytest.mark.parametrize("how", WAYS)
def test_the_package_gaussdb(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It connects, streams, and keeps what the user says, but for timeouts of a service that the string names."""
    install_gaussdb(monkeypatch)
    with serving(Walsender(plays([]), "mppdb_decoding", end=1, version="9.2.4")) as server:
        dsn = said(how, server.dsn, {"options": "-c work_mem=1MB", "application_name": "loader"}, tmp_path, monkeypatch)
        wf.live.follow(dsn, tmp_path / "lake", slot="s", once=True, threads=1, driver="gaussdb")
    assert {one["options"] for one in server.startups} == {f"-c work_mem=1MB {OURS}"}
    assert {one["application_name"] for one in server.startups} == {"loader"}
    timeout = said("environment", "", {"connect_timeout": "3"}, tmp_path, monkeypatch)
    assert find_target(timeout, "gaussdb").seconds == 3
    with pytest.raises(wf.ServerError, match="not found"):
        wf.live.check("service=store", slot="s", driver="gaussdb")


def test_hosts_of_a_service_of_the_package_gaussdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package does not tell them, and defaults do not take their place."""
    install_gaussdb(monkeypatch)
    services = tmp_path / "services"
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    with serving(Walsender(plays([]), "mppdb_decoding", end=1, version="9.2.4")) as server:
        services.write_text("\n".join(["[shop]", *server.dsn.split()]))
        wf.live.follow("service=shop", tmp_path / "lake", slot="s", once=True, threads=1, driver="gaussdb")
    assert server.startups


def test_a_socket_without_a_file_stays_among_the_hosts() -> None:
    (only,) = find_target("host=@/shop,127.0.0.1 connect_timeout=3", "psycopg").attempts
    assert "@/shop,127.0.0.1" in only


@pytest.mark.parametrize("how", ["dsn", "quotes", "url", "PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"])
def test_no_password_is_told(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "pa$$ word-of-the-reader"
    with serving(Walsender(plays([]), password="another", end=1)) as server:
        dsn = server.dsn
        if how == "dsn":
            dsn += f" password='{secret}'"
        elif how == "quotes":
            secret = "'pa\\ss' \"  word-of=the"
            dsn = make_conninfo(dsn, password=secret)
        elif how == "url":
            dsn = f"postgresql://reader:pa$$%20word-of-the-reader@127.0.0.1:{server.port}/shop?sslmode=disable"
        elif how == "PGPASSWORD":
            monkeypatch.setenv(how, secret)
        elif how == "PGPASSFILE":
            file = tmp_path / "passwords"
            file.write_text(f"127.0.0.1:*:*:*:{secret}")
            file.chmod(0o600)
            monkeypatch.setenv(how, str(file))
        else:
            file = tmp_path / "services"
            file.write_text("[shop]\n" + dsn.replace(" ", "\n") + f"\npassword={secret}\n")
            monkeypatch.setenv(how, str(file))
            dsn = "service=shop"
        with pytest.raises(wf.ServerError, match="password authentication failed") as raised:
            wf.live.follow(dsn, tmp_path / "lake", slot="s", publication="p", threads=1, once=True)
        told = "".join(traceback.format_exception(raised.value)) + repr(raised.value)
        assert secret not in told
        assert "word-of" not in told.replace("test_no", "")
        monkeypatch.setenv("PGPASSWORD", "another")
        position = wf.live.follow(server.dsn, tmp_path / "lake", slot="s", publication="p", threads=1, once=True)
    assert "another" not in position.to_json()
    files = [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]
    assert files
    assert not any(b"another" in path.read_bytes() for path in files)


def test_a_service_of_libpq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Walsender(plays([]), end=1)) as server:
        service = tmp_path / "services"
        service.write_text("[shop]\n" + server.dsn.replace(" ", "\n") + "\n")
        monkeypatch.setenv("PGSERVICEFILE", os.fspath(service))
        found = wf.live.check("service=shop", slot="s", publication="p")
    assert {one.level for one in found} <= {"ok", "note", "warning"}


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("host=db user=reader password=secret", "host=db user=reader"),
        ("host=db user=secret dbname=shop password=secret", "host=db dbname=shop user=****"),
        ("host=db user=reader:secret dbname=shop", "host=db dbname=shop user=****"),
        ("host=db dbname='postgresql://reader:secret@db/shop'", "host=db dbname=****"),
        ("host=db dbname='dbname=shop password=secret'", "host=db dbname=****"),
    ],
)
def test_a_server_is_shown_without_its_password(dsn: str, shown: str) -> None:
    """Also where it is in a wrong place: libpq reads no connection string there."""
    target = find_target(dsn, "psycopg")
    assert repr(target) == f"Target({shown})"


def test_a_server_repeats_a_part_of_a_name() -> None:
    name = f"postgresql://reader:secret@{'d' * 60}/shop"
    target = find_target(make_conninfo(host="db", dbname=name), "psycopg")
    assert target.masked(f'FATAL: database "{name[:63]}" does not exist') == 'FATAL: database "****" does not exist'


@pytest.mark.parametrize("dsn", ["password=secret oops", "postgresql://u:secret@[bad", "host='x password=secret"])
def test_a_connection_string_that_cannot_be_read_is_not_repeated(dsn: str, tmp_path: Path) -> None:
    with pytest.raises(wf.OptionError, match="option dsn: expected a connection string") as raised:
        wf.live.follow(dsn, tmp_path, slot="s")
    assert "secret" not in "".join(traceback.format_exception(raised.value)).replace("test_a", "")
