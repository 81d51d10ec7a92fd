"""A lake stays what its first write made of it: format, state, partitions and tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import wireformat as wf

from .reading import manifest_of, read, values
from .writing import KEYS, MESSAGES, capture_of, expected, files_of, write

OTHER_KINDS = {
    "format": {"format": "delta"},
    "state": {"state": "latest", "keys": KEYS},
    "partition_by": {"partition_by": "commit_date"},
}


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_a_lake_stays_what_it_is(name: str, tmp_path: Path) -> None:
    write(MESSAGES[:20], tmp_path, "parquet", "changes")
    with pytest.raises(wf.OptionError, match=f"lake with {name}="):
        capture_of(MESSAGES).write(tmp_path, **OTHER_KINDS[name])


CHOICES: list[tuple[list[str] | None, list[str] | None]] = [
    (["public.orders"], ["public.lines"]),
    (["public.orders"], None),
    (None, ["public.orders"]),
    (["public.orders", "public.lines"], ["public.orders"]),
]


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize(("first", "then"), CHOICES)
def test_a_lake_keeps_its_tables(format: str, first: list[str] | None, then: list[str] | None, tmp_path: Path) -> None:
    """Its position covers the changes of all tables, so those of other tables would be left out without a word."""
    capture_of(MESSAGES[:30]).write(tmp_path, format=format, tables=first)
    before = files_of(tmp_path)
    with pytest.raises(wf.OptionError, match=rf"option tables: .*{re.escape(repr(first and sorted(first)))}, got "):
        capture_of(MESSAGES).write(tmp_path, format=format, tables=then)
    assert files_of(tmp_path) == before
    capture_of(MESSAGES).write(tmp_path, format=format, tables=first)
    assert values(read(tmp_path, ("public", "orders"))) == expected(MESSAGES, "orders", "changes")


def test_equal_patterns_are_the_same_tables(tmp_path: Path) -> None:
    for tables in (["public.orders", "a.*"], ["a.*", "public.orders", '"public"."orders"']):
        capture_of(MESSAGES).write(tmp_path / "some", tables=tables)
    for every in (None, ["*.*"], ["*.*", "public.orders"]):
        capture_of(MESSAGES).write(tmp_path / "all", tables=every)


def test_a_lake_of_an_earlier_release_does_not_say_its_tables(tmp_path: Path) -> None:
    """It gets those of the next write."""
    capture_of(MESSAGES[:30]).write(tmp_path, tables=["public.orders"])
    fields = manifest_of(tmp_path)
    assert fields.pop("patterns") == ["public.orders"]
    (tmp_path / "_wireformat.json").write_text(json.dumps(fields))
    capture_of(MESSAGES).write(tmp_path, tables=["public.orders"])
    assert manifest_of(tmp_path)["patterns"] == ["public.orders"]


def test_a_foreign_delta_table_is_left_alone(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path / "public" / "orders"), pa.table({"id": [1]}))
    with pytest.raises(wf.OptionError, match="has not made"):
        write(MESSAGES, tmp_path, "delta", "changes")


def test_some_tables(tmp_path: Path) -> None:
    result = capture_of(MESSAGES).write(tmp_path, tables=["public.orders"])
    assert result["table_name"].to_pylist() == ["orders"]
    with pytest.raises(wf.OptionError, match=r"option keys: .*did you mean public\.orders"):
        capture_of(MESSAGES).write(tmp_path / "other", state="latest", keys={"public.order": ["id"]}, format="delta")
