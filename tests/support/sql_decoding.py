"""sql-decoding: what its tests need. Its values have forms in place of types."""

from __future__ import annotations

import wireformat as wf

from ..text_samples import SAMPLES
from .texts import stream, text_support

FORMAT = "sql-decoding"

SUPPORT = text_support(
    FORMAT,
    good=b"insert into s.t values (1);",
    stream=stream(wf.Begin(csn=7), wf.Commit(csn=7), type="?string"),
    # that a column at the end of the table was dropped, no event says
    written={0: SAMPLES[FORMAT][0].replace(b", );", b");")},
)
