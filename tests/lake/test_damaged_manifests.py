"""Manifests that were damaged, or edited by hand: they are read as they were, or refused; no path leads outside."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.lake.stored import manifest

from ..test_arguments import complaint
from .reading import manifest_of
from .writing import KINDS, MESSAGES, files_of, write

VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 1 << 63, 1 << 70, 1.5, "", "x", "\x00", "\ud800", [], [1], ["x"], {}, {"x": 1}, [None]),
    *("..", "../x", "../../outside", "/tmp/outside", "public/../../../outside", "public/orders/..", "public//orders"),
    *("C:\\outside", "public\\..\\x", "./x", "_wireformat.json", "public", "public/orders", "public/lines", "a/b/c"),
)


def places(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places in a JSON document."""
    yield path
    if isinstance(found, (dict, list)):
        for key in found if isinstance(found, dict) else range(len(found)):
            yield from places(found[key], (*path, key))


def changed(document: Any, chance: random.Random) -> Any:
    """The document with a value replaced, removed, renamed or repeated."""
    *above, last = chance.choice([*places(document)][1:])
    holder = document
    for key in above:
        holder = holder[key]
    match chance.randrange(5):
        case 0:
            del holder[last]
        case 1 if isinstance(holder, list):
            holder.append(holder[last])
        case 2 if isinstance(holder, dict):
            holder[chance.choice([*holder, "other"])] = holder.pop(last)
        case 3:
            holder[last] = str(holder[last])
        case _:
            holder[last] = chance.choice(VALUES)
    return document


@cache
def lake_of(format: str, state: str) -> dict[str, bytes]:
    """The files of a lake after two writes; a Parquet lake has a list of files of its own."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for most, end in ((0, 20), (1000, 40)):
            patch.setattr(manifest, "MOST_FILES", most)
            write(MESSAGES[:end], Path(folder), format, state)
        return files_of(Path(folder))


def put(files: dict[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.mark.parametrize(("format", "state"), KINDS)
@given(seed=st.integers(0, 1 << 32), changes=st.integers(1, 3))
def test_any_change(format: str, state: str, seed: int, changes: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above) / "lakes" / "lake"
        put(lake_of(format, state), folder)
        (Path(above) / "lakes" / "outside").mkdir()
        (Path(above) / "lakes" / "outside" / "wireformat-000002.parquet").write_bytes(b"x")
        name = chance.choice([path.name for path in folder.rglob("*.json") if "_delta_log" not in str(path)])
        (path,) = folder.rglob(name)
        document = json.loads(path.read_text())
        for _ in range(changes):
            document = changed(document, chance)
        path.write_text(json.dumps(document))
        before = files_of(Path(above) / "lakes")
        calls: list[Callable[[], Any]] = [
            lambda: wf.lake.position(folder),
            lambda: wf.lake.tables(folder),
            lambda: write(MESSAGES, folder, format, state),
        ]
        assert [words for call in calls if (words := complaint(call)) is not None] == [], document
        with suppress(wf.WireformatError):
            for row in wf.lake.tables(folder).to_pylist():
                for one in (row["folder"], *(row["files"] or ())):
                    assert Path(one).resolve().is_relative_to(folder.resolve())
        after = files_of(Path(above) / "lakes")
        outside = {name for name in (*before, *after) if not name.startswith("lake/")}
        assert {name: after.get(name) for name in outside} == {name: before.get(name) for name in outside}


OUTSIDE = ["../x", "/x", "../../lake/public", "public/../../x", "public\\..\\x", "C:/x", "", "public/orders/../../../x"]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize(("format", "state"), KINDS)
def test_a_path_outside(format: str, state: str, path: str, tmp_path: Path) -> None:
    """Nothing is read, written or deleted there."""
    write(MESSAGES[:20], tmp_path / "lake", format, state)
    document = manifest_of(tmp_path / "lake")
    document["tables"][0]["folder"] = path
    for file in document["tables"][0]["files"]:
        file["path"] = f"{path}/{file['path'].rpartition('/')[2]}"
    (tmp_path / "lake" / "_wireformat.json").write_text(json.dumps(document))
    before = files_of(tmp_path)
    for call in (wf.lake.position, wf.lake.tables, lambda folder: write(MESSAGES, folder, format, state)):
        with pytest.raises(
            wf.StateError, match=r"_wireformat\.json: the manifest is damaged: .* restore it from a copy"
        ):
            call(tmp_path / "lake")
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("path", ["../x.parquet", "/x.parquet", "public/lines/../x.parquet", "public/notes/x.parquet"])
def test_a_file_outside_of_its_table(path: str, tmp_path: Path) -> None:
    write(MESSAGES[:20], tmp_path, "parquet", "changes")
    document = manifest_of(tmp_path)
    document["tables"][0]["files"][0]["path"] = path
    (tmp_path / "_wireformat.json").write_text(json.dumps(document))
    with pytest.raises(wf.StateError, match="the manifest is damaged"):
        wf.lake.tables(tmp_path)


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    """They may be those of a name, which would become another one."""
    write(MESSAGES[:20], tmp_path, "parquet", "changes")
    path = tmp_path / "_wireformat.json"
    path.write_bytes(path.read_bytes().replace(b'"Notes"', b'"Notes\xff"'))
    with pytest.raises(wf.StateError, match="got other text"):
        wf.lake.position(tmp_path)


def test_no_type_modifiers(tmp_path: Path) -> None:
    """Where the columns have some."""
    write(MESSAGES[:20], tmp_path, "parquet", "changes")
    document = manifest_of(tmp_path)
    document["tables"][0]["versions"][0]["typmods"] = []
    (tmp_path / "_wireformat.json").write_text(json.dumps(document))
    with pytest.raises(wf.StateError, match="the manifest is damaged"):
        write(MESSAGES, tmp_path, "parquet", "changes")
