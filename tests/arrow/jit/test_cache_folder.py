"""Where the compile cache lies, whom its folder belongs to, and what its name depends on."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import numba
import pytest

from wireformat.arrow.jit import compiler as compiled


@pytest.mark.parametrize("module", ["numba", "llvmlite", "numpy"])
def test_the_releases_of_the_libraries_count(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiled.digest()
    monkeypatch.setattr(sys.modules[module], "__version__", "another")
    assert compiled.digest() != before


def test_settings_that_change_the_code_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiled.digest()
    monkeypatch.setattr("numba.config.BOUNDSCHECK", not numba.config.BOUNDSCHECK)
    assert compiled.digest() != before


def test_the_cpu_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two machines may have one home."""
    before = compiled.digest()
    monkeypatch.setattr(compiled, "_cpu", lambda: ["another"])
    assert compiled.digest() != before


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """(the user's cache folder, the temporary folder), both empty."""
    user, temporary = tmp_path / "user", tmp_path / "temporary"
    user.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(user))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    return user, temporary


def chosen() -> Path:
    """The folder that a fresh process would choose."""
    return Path(compiled.cache_folder.__wrapped__())


def test_the_cache_is_the_users_own(places: tuple[Path, Path]) -> None:
    user, _ = places
    folder = chosen()
    assert folder.parent == user
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert chosen() == folder


def test_a_folder_that_is_given_holds_one_for_this_code(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, _ = places
    given = tmp_path / "given"
    monkeypatch.setattr("numba.config.CACHE_DIR", str(given))
    folder = chosen()
    assert folder == given / f"wireformat-{compiled.digest()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    assert chosen().parent == user


def test_a_folder_that_others_can_replace_is_not_used(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may write in a folder may rename what is in it, unless the folder is sticky."""
    user, _ = places
    given = tmp_path / "given"
    given.mkdir()
    monkeypatch.setattr("numba.config.CACHE_DIR", str(given))
    given.chmod(0o1777)
    assert chosen().parent == given
    given.chmod(0o777)
    assert chosen().parent == user


def test_code_is_kept_in_the_folder_or_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Elsewhere, as beside the source, nothing tells the constants that are compiled in."""
    monkeypatch.setattr(compiled, "cache_folder", lambda: str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("")
    made = compiled.compiled(_one_more)
    assert made(1) == 2
    assert getattr(made, "stats", None) is None or made.stats.cache_path is None


def _one_more(number: int) -> int:
    return number + 1


def test_a_folder_that_others_can_write_is_not_used(places: tuple[Path, Path]) -> None:
    """What lies in it will be run."""
    _, temporary = places
    first = chosen()
    first.chmod(0o777)
    second = chosen()
    assert second.parent == temporary
    second.chmod(0o770)
    third = chosen()
    assert third not in (first, second)
    assert stat.S_IMODE(third.stat().st_mode) == 0o700


def test_a_link_is_not_followed(places: tuple[Path, Path], tmp_path: Path) -> None:
    _, temporary = places
    folder = chosen()
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert chosen().parent == temporary


def test_a_file_in_the_way(places: tuple[Path, Path]) -> None:
    user, temporary = places
    user.rmdir()
    user.write_text("")
    assert chosen().parent == temporary


def test_without_a_home(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative place is none: it would be another one in every working folder."""
    _, temporary = places
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert chosen().parent == temporary
