"""mppdb-json: what its tests need."""

from __future__ import annotations

import wireformat as wf

from ..text_samples import J
from .texts import stream, text_support

SUPPORT = text_support("mppdb-json", good=J, stream=stream(wf.Begin(xid=5), wf.Commit(xid=5, csn=7)))
