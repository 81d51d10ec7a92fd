"""gaussdb-json: what its tests need."""

from __future__ import annotations

import wireformat as wf

from ..text_samples import SAMPLES, J
from .texts import LIES, stream, text_support

FORMAT = "gaussdb-json"
PAIR = rb"\ud83d\ude00"
"""A character in two escapes; the server, and the encoder, write it as it is."""

SUPPORT = text_support(
    FORMAT,
    good=J,
    stream=stream(wf.Begin(csn=1, first_lsn=2, xid=5), wf.Commit(xid=5)),
    written={3: SAMPLES[FORMAT][3].replace(PAIR, "\N{GRINNING FACE}".encode())},
    lies=LIES,
)
