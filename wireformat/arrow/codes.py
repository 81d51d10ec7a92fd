"""Codes: small numbers, from 0 on, which rows have alike where they are alike in something, such as their table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import Array

MOST_FOR_RADIX_SORT = 1 << 16
"""numpy sorts numbers of 16 bits without comparing them."""


def combined_codes(columns: Sequence[Array]) -> Array:
    """Returns int64[n]: rows with equal codes in all columns get the same code, from 0 on."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes = codes * (int(column.max(initial=0)) + 1) + column
        if int(codes.max(initial=0)) > 1 << 24:
            codes = grouped(codes)[1]
    return codes


def grouped(codes: Array) -> tuple[Array, Array]:
    """Returns the first row of each code that occurs, int64[m], and for each row the index of its code in it, int64[n].

    The codes are in ascending order. They are sorted only if there may be more codes than rows.
    """
    count = int(codes.max(initial=-1)) + 1
    if count > len(codes):
        _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return firsts, inverse.reshape(-1)
    firsts = np.full(count, -1)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last one that is assigned stays
    occurs = firsts >= 0
    return firsts[occurs], (np.cumsum(occurs) - 1)[codes]


def in_groups(codes: Array, count: int) -> tuple[Array, list[int]]:
    """Returns the rows ordered by their codes, int64[n], and where those of each code begin and the last ones end.

    count   all codes are below
    """
    order = np.argsort(codes.astype(np.uint16) if count <= MOST_FOR_RADIX_SORT else codes, kind="stable")
    return order, np.cumsum([0, *np.bincount(codes, minlength=count).tolist()]).tolist()
