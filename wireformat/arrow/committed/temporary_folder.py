"""A folder for what does not stay in memory: it goes with `close`, with its object, and at the end with the process."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class TemporaryFolder:
    """Made when it is first asked for; nobody has to close it."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._remove: weakref.finalize[[str], TemporaryFolder] | None = None

    @property
    def path(self) -> Path:
        """The folder."""
        if self._path is None:
            self._path = Path(tempfile.mkdtemp(prefix="wireformat-"))
            self._remove = weakref.finalize(self, shutil.rmtree, str(self._path), ignore_errors=True)
        return self._path

    def close(self) -> None:
        """Remove it with all that lies in it."""
        if self._remove is not None:
            self._remove()
        self._path = self._remove = None
