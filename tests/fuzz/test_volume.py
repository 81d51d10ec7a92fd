"""The same few records many times over; of messages of 200 MB, with bounds checked and memory watched."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ..engines import SCANS
from ..numba_settings import BOUNDS_CHECKED
from . import volume

LARGE_BYTES = 200_000_000
SUBPROCESS_SECONDS = 900


@pytest.mark.parametrize("name", volume.CASES)
def test_many_records(name: str) -> None:
    volume.check(volume.CASES[name])


def test_every_scan_has_cases() -> None:
    assert {case.format for case in volume.CASES.values()} == set(SCANS)


@pytest.mark.slow
@pytest.mark.parametrize("format", volume.SMALLEST)
def test_a_large_message_of_the_smallest_records(format: str) -> None:
    command = [sys.executable, "-m", "tests.fuzz.volume", "--bytes", str(LARGE_BYTES), format]
    environment = os.environ | BOUNDS_CHECKED
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SUBPROCESS_SECONDS)
    assert done.returncode == 0, done.stderr[-5000:]
    assert " rows in " in done.stdout
