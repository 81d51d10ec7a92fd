"""The rules for many transactions at once give what the rules for one give, for every combination of values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa

from wireformat.arrow.committed.batch import InputRows, PlainTransactions
from wireformat.arrow.committed.cells import ControlCells, are_plain, is_plain
from wireformat.arrow.committed.facts import plain_transactions_facts
from wireformat.arrow.schemas import CHANGES
from wireformat.lsn import signed
from wireformat.stream.attempts import facts_of
from wireformat.stream.controls import Control
from wireformat.stream.positions import Position

HIGH = (1 << 63) + 5
"""A number whose bits are those of a negative int64."""


def batch_of(controls: list[Control]) -> pa.RecordBatch:
    """Control records as row changes."""
    rows = [
        {
            "kind": control.kind,
            **{
                name: None if value is None else signed(value)
                for name in ("lsn", "xid", "csn", "commit_lsn")
                for value in [getattr(control, name)]
            },
            "detail": [
                (name, value) for name in ("gid", "username", "origin") if (value := getattr(control, name)) is not None
            ],
        }
        for control in controls
    ]
    return pa.RecordBatch.from_pylist(rows, CHANGES)


def test_plain_transactions() -> None:
    numbers, gids = (None, 1, HIGH), (None, "g")
    begins = [Control("BEGIN", xid=xid, commit_lsn=lsn, gid=gid) for xid, lsn, gid in product(numbers, numbers, gids)]
    commits = [Control("COMMIT", xid=xid, commit_lsn=lsn) for xid, lsn in product(numbers, numbers)]
    pairs = [*product(begins, commits)]
    batch = batch_of([control for pair in pairs for control in pair])
    rows = np.arange(0, 2 * len(pairs), 2)
    expected = [is_plain(*pair) for pair in pairs]
    assert are_plain(ControlCells(batch), rows, rows + 1).tolist() == expected
    assert {*expected} == {True, False}


def test_resent_transactions_and_their_facts() -> None:
    """In groups of two transactions, behind every position."""
    numbers = (None, 1, HIGH)
    ends = [*product(numbers, repeat=2)]
    positions = [Position(4, lsn, csn) for lsn, csn in product(numbers, (None, 1))]
    found = {True: 0, False: 0}
    for first, second in product(ends, repeat=2):
        controls = [
            Control(kind, lsn=9, xid=xid, csn=csn if kind == csn_kind else None, commit_lsn=lsn, origin="o")
            for xid, (csn_kind, (lsn, csn)) in enumerate(zip(("BEGIN", "COMMIT"), (first, second), strict=True))
            for kind in ("BEGIN", "COMMIT")
        ]
        rows = InputRows.of(batch_of(controls))
        for position in positions:
            many = plain_transactions_facts(rows, PlainTransactions(np.array([0, 2]), np.array([1, 3])), position)
            after, resent, facts = position, [], []
            for begin, commit in zip(controls[::2], controls[1::2], strict=True):
                facts.append(facts_of(begin, commit, after.transactions + 1))
                resent.append(after.covers(facts[-1].commit_lsn, facts[-1].csn))
                after = after.advanced(facts[-1].commit_lsn, facts[-1].csn)
            assert many.resent.tolist() == resent
            assert position.advanced(*many.highest, transactions=2) == after
            names = ("sequence", "xid", "csn", "commit_lsn")
            assert [
                tuple(None if row[name] is None else row[name] & ((1 << 64) - 1) for name in names)
                for row in many.facts.to_pylist()
            ] == [tuple(getattr(one, name) for name in names) for one in facts]
            found[resent[0]] += 1
            found[resent[1]] += 1
    assert all(found.values())
