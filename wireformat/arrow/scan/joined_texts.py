"""Decodes many texts at once: joined, each followed by a zero byte.

No sequence of bytes in these encodings includes a zero byte, so the zero bytes of the decoded text show where each text
ends.
"""

from __future__ import annotations

import codecs

import numpy as np

from ...options import ReadOptions
from ..arrays import Array

LOOKS_AHEAD = frozenset(("euc_jis_2004", "euc_jisx0213", "euc_jp", "euc_kr", "gb18030"))
"""Codecs that take an invalid sequence for longer at the end of a text than before other bytes."""

LONGEST_SEQUENCE = 8
"""The most bytes of one character: a syllable that EUC-KR spells out. No codec looks further ahead."""

JOINABLE = frozenset(
    (
        *LOOKS_AHEAD,
        *(
            "ascii",
            "utf-8",
            "charmap",
            "hp-roman8",
            "koi8-r",
            "koi8-t",
            "koi8-u",
            "kz1048",
            "palmos",
            "ptcp154",
            "tis-620",
        ),
        *("big5", "big5hkscs", "gb2312", "gbk", "johab", "shift_jis", "cp932", "cp949", "cp950"),
        *(f"iso8859-{number}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)),
        *("cp437", "cp720", "cp737", "cp775", "cp874", "cp1006", "cp1125"),
        *(f"cp{number}" for number in (850, 852, 855, 856, 857, 858, 860, 861, 862, 863, 865, 866, 869)),
        *(f"cp{number}" for number in range(1250, 1259)),
        *(f"mac-{name}" for name in ("croatian", "cyrillic", "greek", "iceland", "latin2", "roman")),
        *("mac-romanian", "mac-turkish"),
    )
)
"""Codecs that decode joined texts as they decode each of them: all of Python's that may be asked for. Texts in codecs
that are not listed, of other packages, are decoded one by one, by the second look."""


def can_join(options: ReadOptions) -> bool:
    """Whether texts can be decoded together. In strict UTF-8 there is nothing to gain: what needs it is invalid."""
    return options.encoding in JOINABLE and (options.encoding, options.encoding_errors) != ("utf-8", "strict")


def _mark(error: UnicodeError) -> tuple[str, int]:
    """An error handler that puts a surrogate, which no text has, in the place of the rest of a text."""
    assert isinstance(error, UnicodeDecodeError)
    return _BAD, error.object.index(b"\0", error.start)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """An error handler that replaces what `replace` replaces where the text is decoded by itself."""
    assert isinstance(error, UnicodeDecodeError)
    end = error.object.index(b"\0", error.start)
    if end - error.start >= LONGEST_SEQUENCE:
        return "\N{REPLACEMENT CHARACTER}", error.end
    return error.object[error.start : end].decode(error.encoding, "replace"), end


_BAD = "\ud800"
_MARK, _REPLACE = "wireformat.mark_bad_text", "wireformat.replace_in_joined_texts"
codecs.register_error(_MARK, _mark)
codecs.register_error(_REPLACE, _replace)


def decode_joined(joined: Array, ends: Array, encoding: str, errors: str) -> tuple[Array, Array, Array]:
    """Decodes joined texts, and encodes them in UTF-8.

    joined    uint8[n], the texts, each followed by a zero byte
    ends      int64[texts], the offsets of these zero bytes. A text may include others
    encoding  one of JOINABLE
    errors    strict or replace
    returns   uint8[m], the texts in UTF-8, each followed by a zero byte; int64[texts + 1], the offset of each text, and
              m; uint8[texts], 1 for texts that must be decoded one by one: they are invalid or include a zero byte
    """
    handler = _MARK if errors == "strict" else _REPLACE if encoding in LOOKS_AHEAD else errors
    decoded = str(memoryview(joined), encoding, handler)
    bad = np.zeros(len(ends), np.uint8)
    try:
        data = np.frombuffer(decoded.encode(), np.uint8)
        zeros = np.flatnonzero(data == 0)
    except UnicodeEncodeError:  # there are marks: surrogates, whose first two bytes are ED, and A0 or more
        data = np.frombuffer(decoded.encode("utf-8", "surrogatepass"), np.uint8)
        zeros = np.flatnonzero(data == 0)
        marks = np.flatnonzero((data[:-1] == 0xED) & (data[1:] >= 0xA0))
        owners = np.searchsorted(zeros, marks)
        bad[np.searchsorted(ends, np.flatnonzero(joined == 0)[owners])] = 1
    if len(zeros) > len(ends):
        zeros_before = np.flatnonzero(joined == 0)
        owners = np.searchsorted(ends, zeros_before)
        bad[owners[ends[owners] != zeros_before]] = 1
        zeros = zeros[np.searchsorted(zeros_before, ends)]
    offsets = np.zeros(len(ends) + 1, np.int64)
    offsets[1:] = zeros + 1
    return data, offsets, bad
