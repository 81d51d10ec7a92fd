"""What the definitions of a table say of the columns that it had before."""

from __future__ import annotations

from typing import Any

import pytest

import wireformat as wf
from wireformat.sources.identities import Definition

from ..full_tables import FULL, FullTable


@pytest.mark.parametrize(
    ("before", "after", "added"),
    [
        ("id a", "id a b", "b"),
        ("id a b", "id b", ""),
        ("id a b c", "id c d", "d"),
        ("name id price", "title id price", "title"),
        ("id a b c", "id b c a", "a"),
        ("id a b c", "c b", "b"),
        ("id a a_new", "id a_old a", "a_old a"),
        ("id a a_new b", "id a_old a b", "a_old a"),
        ("id a b c", "id x a c", "x a"),
        ("id a_new a b", "id a a_old b", "a a_old b"),
        ("id b", "id a b", "a"),
        ("b c", "a b c d", "a d"),
        ("id a b", "id b a", "a"),
    ],
)
def test_columns_that_are_new(before: str, after: str, added: str) -> None:
    """Also those whose name may be that of another column now, since columns keep their order."""
    found = Definition((), tuple(after.split())).added_after(Definition((), tuple(before.split())))
    assert found == added.split()


@pytest.mark.parametrize(
    ("before", "after", "added"),
    [("c id", "a b id", "a b"), ("id a a_new", "id a_old a", "a_old a"), ("a id", "id a", "a")],
)
def test_columns_that_are_new_beside_a_key(before: str, after: str, added: str) -> None:
    """A key that is there before and after is the same, whatever columns a publication's list has now."""
    old, new = (Definition(("id",), tuple(names.split())) for names in (before, after))
    assert new.added_after(old) == added.split()


@pytest.mark.parametrize("identity", ["full", "default"])
def test_columns_that_are_renamed_one_after_the_other(identity: str) -> None:
    """The rows from before do not have the values under the new names."""
    table = FullTable()
    table.identity = identity
    table.columns = ["id", "a", "a_new"]
    for values in ("1", "10", "11"), ("2", "20", "21"):
        table.insert(*values)
    names = {"id": "id", "a": "a_old", "a_new": "a"}
    table.columns = ["id", "a_old", "a"]
    table.rows = [{names[name]: value for name, value in row.items()} for row in table.rows]
    if identity == "full":
        table.delete(0)
    else:
        key = wf.TupleData(("id",), (table.rows.pop(0)["id"],), ("text",))
        table.transaction(wf.Delete(**FULL, old=key, old_kind="key"))
    (row,) = latest(table)
    assert (row["id"], row["a"], row["a_old"]) == ("2", None, None)
    assert {"a", "a_old"} <= {*row["_unchanged"]}


def latest(table: FullTable) -> list[dict[str, Any]]:
    return list(wf.Capture(table.messages, "pgoutput").latest("public.t").to_pylist())
