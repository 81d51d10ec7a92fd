"""The scan reads no byte before or after the messages: the pages around them must not be read."""

from __future__ import annotations

import subprocess
import sys

import pytest

_BETWEEN_PAGES = """
import ctypes, mmap, sys
import numpy as np
import pyarrow as pa
import wireformat as wf

format, message, side = sys.argv[1], sys.argv[2].encode(), sys.argv[3]
page = mmap.PAGESIZE
memory = mmap.mmap(-1, 3 * page)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
start = page if side == "before" else 2 * page - len(message)
memory[start : start + len(message)] = message
for guard in (0, 2 * page):
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + guard), page, 0) == 0
offsets = pa.py_buffer(np.array([0, len(message)], np.int32))
data = pa.foreign_buffer(address + start, len(message), base=memory)
messages = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, data])
for row in wf.arrow.changes(messages, format, mode="PERMISSIVE", threads=1).to_pylist():
    print(row["kind"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="memory is protected in another way")
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("gaussdb-text", "table   INSERT: a[integer]:1"),
        ("test-decoding", "table : INSERT: a[integer]:1"),
        ("opengauss-test-decoding", "table : INSERT: a[integer]:1"),
        ("sql-decoding", "insert into . values (1);"),
    ],
)
def test_a_table_without_a_name(format: str, message: str, side: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BETWEEN_PAGES, format, message, side], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["CORRUPT"]), done.stderr
