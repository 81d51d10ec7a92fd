"""The versions of rows that are taken together are those of rows that are taken one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from wireformat.arrow.row_changes import TABLE_RELATION
from wireformat.arrow.typed_tables.rows import rows_of_table
from wireformat.arrow.typed_tables.unsent import unsent_columns
from wireformat.arrow.typed_tables.versions import TableVersions, Version, image_facts, relation_facts

from .changes_made import TYPES, change, changes, relation

WIDE = {"id": "1", "note": "x"}
ROWS = [
    change("INSERT", {"id": "1"}),
    change("INSERT", WIDE),
    change("INSERT", {"note": "x", "id": "1"}),
    change("INSERT", WIDE, types={"id": "bigint", "note": "text"}),
    change("INSERT", {"$1": "1", "$2": "x"}, types=None),
    change("UPDATE", WIDE),
    change("UPDATE", {"id": "1"}, unchanged=["note"]),
    change("UPDATE", {"id": "1"}, types={"id": "bigint"}),
    change("UPDATE", WIDE, types={"id": "bigint", "note": "text"}),
    change("UPDATE", {"note": "x"}),
    change("UPDATE", {"day": "2026-11-21"}),
    change("UPDATE", WIDE, old={"note": "y"}),
    change("UPDATE", WIDE, old={"note": "y", "id": "1"}),
    change("UPDATE", {"id": "1"}, old=WIDE),
    change("UPDATE", {"$1": "1", "$2": "x"}, old={"$2": "y"}, types=None),
    change("DELETE", old={"id": "1"}),
    change("DELETE", old=WIDE, types=None),
    change("TRUNCATE"),
    relation(TYPES, [-1, -1, 393222, -1], ["id"]),
    relation(TYPES, [-1, -1, 393222, -1], ["id", "note"]),
    relation({"id": "integer"}, [-1], ["id"]),
]
INSERT_ID, INSERT_WIDE, RELATION = 0, 1, 18
BIG_ID, BIG_WIDE, NOTE = 7, 8, 9


@example([[RELATION, INSERT_ID, RELATION]])
@example([[INSERT_WIDE, BIG_ID, NOTE, BIG_ID, BIG_WIDE, NOTE]])
@given(st.lists(st.lists(st.sampled_from(range(len(ROWS))), min_size=1, max_size=30), min_size=1, max_size=3))
def test_rows_that_are_taken_together(parts: list[list[int]]) -> None:
    together, one_by_one = TableVersions(), TableVersions()
    for numbers in parts:
        (rows,) = rows_of_table(changes(*(ROWS[number] for number in numbers)), "shop", "orders")
        wanted = []
        for index in range(len(numbers)):
            facts = (relation_facts if rows.kinds[index] == TABLE_RELATION else image_facts)(rows, index)
            one_by_one.current = one_by_one.find(facts)
            wanted.append(one_by_one.current)
        assert together.take(rows, np.arange(len(numbers))).tolist() == wanted
        assert (together.versions, together.current) == (one_by_one.versions, one_by_one.current)


def test_old_images_that_leave_out_columns_tell_the_same() -> None:
    """test_decoding leaves out the nulls of old rows. What there are many of is then looked at once."""
    olds = [None, {"id": "1"}, {"note": "y"}, {"day": "2026-11-21"}, {"id": "1", "day": "2026-11-21"}]
    new = {"id": "1", "note": "x", "day": "2026-11-21"}
    (rows,) = rows_of_table(changes(*(change("UPDATE", new, old=old) for old in olds)), "shop", "orders")
    assert len({*rows.layouts.tolist()}) == len(olds)
    first, *others = (image_facts(rows, index) for index in range(len(olds)))
    assert all(facts is first for facts in others)
    (unsent,) = unsent_columns(
        rows, np.zeros(len(olds), np.int64), [Version({}, True)], [*new, "later"], are_named=False
    ).lists
    assert unsent == ("later",)
