"""An older version of the package is measured beside this one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import feather

from benchmarks import older, older_works
from benchmarks.generate import BINARY, make_part

PACKAGE = Path(older.__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a few messages."""
    path = tmp_path_factory.mktemp("older") / "messages.arrow"
    feather.write_feather(make_part(0, 300)[BINARY], path, compression="uncompressed")
    return path


@pytest.mark.slow
def test_both_versions_do_each_work_as_often(messages: Path) -> None:
    seconds = older.compare((PACKAGE, PACKAGE), messages, BINARY, rounds=2)
    assert list(seconds) == list(older_works.WORKS)
    assert [len(times) for found in seconds.values() for times in found] == [2] * (2 * len(older_works.WORKS))


@pytest.mark.slow
def test_a_version_that_does_less_is_told(messages: Path, tmp_path: Path) -> None:
    (tmp_path / "wireformat").mkdir()
    (tmp_path / "wireformat" / "__init__.py").write_text(
        "import pyarrow\n\n\nclass arrow:\n    changes = staticmethod(lambda *_, **__: pyarrow.table({'row': [1]}))\n"
        "\n\ndef decode(*_):\n    return [None]\n"
    )
    with pytest.raises(RuntimeError, match="the older version found 1 rows, this one"):
        older.compare((tmp_path, PACKAGE), messages, BINARY, rounds=0)
