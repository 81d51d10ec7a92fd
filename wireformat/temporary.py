"""A folder of temporary files."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What the system says where there is no room for a file."""


class TemporaryFolder:
    """A temporary folder, created when it is first used, and removed at the latest when this object ends."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._remove: weakref.finalize[[str], TemporaryFolder] | None = None

    @property
    def path(self) -> Path:
        """The folder; the first access creates it."""
        if self._path is None:
            with naming_the_folder():
                self._path = Path(tempfile.mkdtemp(prefix="wireformat-"))
            self._remove = weakref.finalize(self, shutil.rmtree, str(self._path), ignore_errors=True)
        return self._path

    def close(self) -> None:
        """Removes the folder and everything in it."""
        if self._remove is not None:
            self._remove()
        self._path = self._remove = None


@contextmanager
def naming_the_folder() -> Iterator[None]:
    """Names the folder of temporary files in errors that say that a disk is full: nobody has asked for these files."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        advice = "temporary files need more room there; or set TMPDIR to another folder"
        raise OSError(error.errno, f"{os.strerror(error.errno)}: {advice}", tempfile.gettempdir()) from None
