"""How far a stream was delivered, and what the server sends again after a restart."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """How far a stream was delivered.

    transactions    how many committed transactions it had, those that were sent again counted in
    lsn, csn        the highest of them, unsigned
    prepared        gid and LSN of those that were delivered when they were prepared and whose end did not come yet
    """

    transactions: int = 0
    lsn: int | None = None
    csn: int | None = None
    prepared: tuple[tuple[str, int | None], ...] = ()

    def covers(self, lsn: int | None, csn: int | None) -> bool:
        """Whether a transaction with this commit_lsn and csn was there before, and is sent again.

        In CSN order LSNs do not rise, but CSNs do; so both must be below. Without an LSN nobody can know.
        """
        if lsn is None or self.lsn is None or lsn > self.lsn:
            return False
        return csn is None or (self.csn is not None and csn <= self.csn)

    def behind(self, lsn: int | None, csn: int | None, transactions: int = 1) -> Position:
        """The position behind so many more transactions, the highest of them with this commit_lsn and csn."""
        return Position(
            self.transactions + transactions, _highest(self.lsn, lsn), _highest(self.csn, csn), self.prepared
        )


def _highest(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else max(left, right)
