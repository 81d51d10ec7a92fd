"""opengauss-test-decoding: what its tests need."""

from __future__ import annotations

import wireformat as wf

from .texts import stream, text_support

SUPPORT = text_support(
    "opengauss-test-decoding",
    good=b"table s.t: INSERT: a[integer]:1",
    stream=stream(wf.Begin(xid=5), wf.Commit(xid=5, csn=7)),
)
