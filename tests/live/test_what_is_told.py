"""What `wireformat follow` prints in a bad hour: what has happened, until when it tries again, what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..cli.commands import run
from ..servers.installations import installations
from ..servers.server import running
from .databases import Database, database
from .test_slot_ranges import MESSAGES
from .walsender import Session, Walsender, plays, serving


def told(server: Walsender, lake: Path, *options: object) -> tuple[int, list[str]]:
    """The exit code and the lines."""
    given = ("--slot", "s", "--publication", "p", "--to", lake, "--once", "--threads", 1, "--batch-seconds", 0.01)
    with serving(server):
        result = run("follow", server.dsn, *given, *options)
    return result.exit_code, result.stderr.splitlines()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))


def test_a_lost_connection_says_how_long_it_is_tried_again(tmp_path: Path) -> None:
    def play(session: Session, number: int) -> None:
        if number < 2:
            session.cut()
        plays(MESSAGES)(session, number)

    code, lines = told(Walsender(play, end=400), tmp_path)
    assert code == 0
    (again,) = (line for line in lines if line.startswith("connecting again"))
    assert re.match(r"connecting again: .*closed the connection.*\(until \d\d:\d\d:\d\d\): 0/1, 0 rows", again)


def test_the_end_of_the_attempts_says_so(tmp_path: Path) -> None:
    server = Walsender(lambda session, number: session.cut(), end=400)
    code, lines = told(server, tmp_path, "--reconnect-seconds", 0.5)
    assert code == 1
    assert lines[-1].endswith("; given up after 0.5 seconds, see --reconnect-seconds")


def test_warnings_of_the_checks_are_printed_once(tmp_path: Path) -> None:
    """Also by a run that nobody has checked before, and again after a reconnection."""

    def play(session: Session, number: int) -> None:
        if number == 0:
            session.cut()
        plays(MESSAGES)(session, number)

    server = Walsender(play, end=400, answers={"SHOW server_encoding": lambda _: [{"server_encoding": "SQL_ASCII"}]})
    code, lines = told(server, tmp_path)
    assert code == 0
    warnings = [line for line in lines if line.startswith("warning: ")]
    assert warnings[0].startswith("warning: encoding: the database is SQL_ASCII")
    assert len(set(warnings)) == len(warnings)


def test_advice_is_in_the_words_of_the_command(db: Database, tmp_path: Path) -> None:
    result = run("follow", db.dsn, "--slot", db.slot, "--to", tmp_path / "lake", "--create-slot")
    assert "pgoutput needs the name of a publication, such as --publication p" in result.stderr


def test_a_slot_that_is_gone_is_not_to_be_created_again(db: Database, tmp_path: Path) -> None:
    """It would begin after changes that the lake lacks."""
    db.follow(tmp_path / "lake", create_slot=True)
    db.execute(f"select pg_drop_replication_slot('{db.slot}')")
    options = ("--slot", db.slot, "--publication", "p", "--to", tmp_path / "lake", "--once")
    result = run("follow", db.dsn, *options)
    assert result.exit_code == 1
    assert "its slot no longer exists" in result.stderr
    assert "--create-slot" not in result.stderr


def test_nothing_is_said_of_a_position_that_is_not_known(db: Database, tmp_path: Path) -> None:
    """The whole log of the server is not how far a new lake is behind."""
    options = ("--slot", db.slot, "--publication", "p", "--to", tmp_path / "lake", "--once", "--threads", 1)
    result = run("follow", db.dsn, *options, "--create-slot", "--snapshot", "--metrics", tmp_path / "metrics")
    lines = result.stderr.splitlines()
    assert lines[0] == "creating the slot: waits for transactions that are open"
    assert re.match(r"snapshot: waits for transactions that are open: 0/[1-9A-F]\w+, 0 rows in 0 commits,", lines[1])
    assert '"lsn": "0/0", "lag_bytes": null' in (tmp_path / "metrics").read_text().splitlines()[0]


def test_a_key_column_that_is_renamed_between_two_changes(db: Database, tmp_path: Path) -> None:
    """In one batch, the earlier changes lack it."""
    db.follow(tmp_path / "lake", create_slot=True, format="delta", state="latest")
    db.execute(
        "insert into t values (1, 'a', 1)", "alter table t rename id to number", "insert into t values (2, 'b', 1)"
    )
    options = ("--slot", db.slot, "--publication", "p", "--to", tmp_path / "lake", "--once", "--threads", 1)
    result = run("follow", db.dsn, *options, "--format", "delta", "--state", "latest")
    assert result.exit_code == 1
    assert (
        "changes from before a key column was added, renamed or given another type have none [table public.t]"
        in result.stderr
    )


@pytest.mark.server
@pytest.mark.parametrize("installed", sorted(installations()))
def test_a_publication_that_is_renamed_before_a_change_is_read(installed: int, tmp_path: Path) -> None:
    """The server looks it up as it was then: no name helps any more. From 18 on, it leaves the change out."""
    with running(installations()[installed]) as server, database(server, "renamed") as db:
        db.follow(tmp_path / "lake", create_slot=True)
        db.execute(
            "alter publication p rename to q", "insert into t values (1, 'a', 1)", "alter publication q rename to p"
        )
        options = ("--slot", db.slot, "--publication", "p", "--to", tmp_path / "lake", "--once", "--threads", 1)
        result = run("follow", db.dsn, *options)
    assert result.exit_code == 1
    assert 'publication "p"' in result.stderr
    assert re.search("it was not under this name when the change was made|the stream leaves changes out", result.stderr)
    assert re.search("begin anew(, with a new slot)? (and|with) the rows that the tables have", result.stderr)


def test_a_lake_that_is_not_there(db: Database, tmp_path: Path) -> None:
    """A new slot has sent nothing yet. One that is there may have: of a lake whose disk is not mounted, for example."""
    options = ("--slot", db.slot, "--publication", "p", "--to", tmp_path / "lake", "--once", "--threads", 1)
    first = run("follow", db.dsn, *options, "--create-slot")
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    second = run("follow", db.dsn, *options)
    third = run("follow", db.dsn, *options)
    assert (first.exit_code, second.exit_code, third.exit_code) == (0, 0, 0)
    words = "warning: lake: there is none, it begins where the slot is, at 0/"
    assert [words in one.stderr for one in (first, second, third)] == [False, True, False]
