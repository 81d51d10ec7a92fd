"""The site, built once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.site.pages import ROOT

MOST_SECONDS = 60


@pytest.fixture(scope="session")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages."""
    pytest.importorskip("pydata_sphinx_theme", reason="the extra docs is not installed; Python 3.10 has none")
    work = tmp_path_factory.mktemp("site")
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tools.site", "--work", work], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - started < MOST_SECONDS
    return work / "html"
