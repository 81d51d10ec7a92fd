"""The type catalogue: what the tool generates from the table, and names that lead back to numbers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.pgtypes import SQL_NAMES, type_name, type_oid

from ..golden_cases import type_names
from ..strategies import type_texts

ROOT = Path(__file__).parents[2]


def tool() -> ModuleType:
    path = ROOT / "tools" / "generate_type_catalogue.py"
    spec = importlib.util.spec_from_file_location("generate_type_catalogue", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_catalogue_is_what_the_tool_generates() -> None:
    assert tool().generate() == (ROOT / "wireformat" / "pgtypes" / "catalogue.py").read_text(encoding="utf-8")


def test_the_catalogue_holds_the_whole_table() -> None:
    assert type_names() == SQL_NAMES
    assert len(SQL_NAMES) > 150


def test_names_are_unique() -> None:
    assert len(set(SQL_NAMES.values())) == len(SQL_NAMES)


def test_two_types_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = tool()
    source = tmp_path / "types.csv"
    source.write_text("oid,name,sql_name\n1,a,same\n2,b,same\n")
    monkeypatch.setattr(generator, "SOURCE", source)
    with pytest.raises(ValueError, match="same SQL name"):
        generator.generate()


@pytest.mark.parametrize(
    ("oid", "name"),
    [
        (16, "boolean"),
        (18, '"char"'),
        (1700, "numeric"),
        (5545, "tinyint"),
        (28, "xid"),
        (16385, "oid:16385"),
        (0, "oid:0"),
    ],
)
def test_some_names(oid: int, name: str) -> None:
    assert type_name(oid) == name
    assert type_oid(name) == oid


@given(st.integers(0, 0xFFFFFFFF) | st.sampled_from(sorted(SQL_NAMES)))
def test_every_number_has_a_name_that_leads_back(oid: int) -> None:
    assert type_oid(type_name(oid)) == oid


@given(type_texts())
def test_every_name_has_a_number_that_leads_back(name: str) -> None:
    assert type_name(type_oid(name)) == name


@pytest.mark.parametrize(
    "name", ["", "int", "oid:", "oid:x", "oid:-1", "oid:4294967296", "oid: 5", "oid:٣", "OID:5", "my.type"]
)
def test_names_without_a_number(name: str) -> None:
    with pytest.raises(ValueError, match="has no number"):
        type_oid(name)
