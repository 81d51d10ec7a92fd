"""What a check says of a slot, by the server's pg_replication_slots, and of the slots that are free."""

from __future__ import annotations

from typing import Any, cast

import pytest

from wireformat.live.checks.findings import LAKE, Wanted
from wireformat.live.checks.server import free_slot_findings, slot_findings
from wireformat.live.connection import Connection
from wireformat.live.slots import Slot, System

SYSTEM = System("1", 1, 0x2_000_000, "shop")
WANTED = Wanted("lake", ("shop",), None)


def slot(**facts: str) -> Slot:
    """A slot that can be read, but for these facts."""
    return Slot("lake", "pgoutput", "shop", False, 0x1_000_000, 0x1_000_000, {"slot_type": "logical", **facts})


def found(slot: Slot | None, wanted: Wanted = WANTED) -> list[tuple[str, str]]:
    """The level and the check of each finding that is not ok."""
    return [(one.level, one.check) for one in slot_findings(wanted, slot, SYSTEM) if one.level != "ok"]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, []),
        ({"wal_status": "reserved"}, []),
        ({"wal_status": "extended"}, [("note", "retained")]),
        ({"wal_status": "unreserved"}, [("warning", "retained")]),
        ({"wal_status": "lost"}, [("error", "slot")]),
        ({"conflicting": "t"}, [("error", "slot")]),
        ({"failover": "f"}, [("note", "failover")]),
        ({"failover": "t"}, []),
        ({"two_phase": "t"}, [("error", "slot")]),
        ({"slot_type": "physical"}, [("error", "slot")]),
        ({"confirmed_csn": "17"}, [("error", "slot")]),
    ],
)
def test_facts_of_a_slot(facts: dict[str, str], expected: list[tuple[str, str]]) -> None:
    assert found(slot(**facts)) == expected


def test_what_the_server_keeps() -> None:
    texts = [one.text for one in slot_findings(WANTED, slot(wal_status="unreserved"), SYSTEM)]
    assert "the server keeps 16.8 MB of its log for the slot" in texts
    assert any("max_slot_wal_keep_size" in text for text in texts)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"is_active": True}, ("error", "slot")),
        ({"database": "other"}, ("error", "database")),
        ({"plugin": "wal2json"}, ("error", "plugin")),
    ],
)
def test_slots_that_cannot_be_read(changed: dict[str, Any], expected: tuple[str, str]) -> None:
    assert found(slot()._replace(**changed)) == [expected]


def test_a_slot_that_is_not_there() -> None:
    assert found(None) == [("error", "slot")]
    assert found(None, WANTED._replace(creates_slot=True)) == [("note", "slot")]
    (missing,) = slot_findings(WANTED, None, SYSTEM)
    assert missing.advice.endswith(
        "with pgoutput and --via streaming, `wireformat follow --snapshot` copies the existing rows"
    )


class Server:
    """Answers how many slots are free; None if it does not say."""

    def __init__(self, free: int | None) -> None:
        self._free = free

    def query(self, text: str) -> list[dict[str, str | None]]:
        """See Connection.query."""
        return [] if self._free is None else [{"free": str(self._free)}]


@pytest.mark.parametrize(
    ("free", "is_there", "creates_slot", "is_enough"),
    [
        (2, False, True, True),
        (1, False, True, False),
        (1, True, True, True),
        (1, False, False, True),
        (0, True, False, False),
        (None, False, True, True),
    ],
)
def test_a_snapshot_needs_a_slot_for_a_while(
    free: int | None, is_there: bool, creates_slot: bool, is_enough: bool
) -> None:
    wanted = WANTED._replace(creates_slot=creates_slot)
    findings = [*free_slot_findings(cast(Connection, Server(free)), wanted, slot() if is_there else None)]
    assert not findings if is_enough else [one.passes for one in findings] == [True]
    assert all(one.check == "max_replication_slots" for one in findings)


def test_what_to_do_is_said_by_the_keeper_of_the_position() -> None:
    (lost,) = (one for one in slot_findings(WANTED, slot(wal_status="lost"), SYSTEM) if one.level == "error")
    assert LAKE.lost in lost.advice
