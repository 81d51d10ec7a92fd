"""How deltalake is given a folder of a lake, and what its errors become."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import LakeError
from ..stored.delta_files import one_line
from ..stored.store import Store


def delta_uri(store: Store, folder: str) -> str:
    """Returns the URI of the Delta table in a folder."""
    return Path(store.path(folder)).as_uri() if store.is_local else store.uri(folder)


@contextmanager
def delta_errors(store: Store, folder: str) -> Iterator[None]:
    """Raises LakeError, which names the table in a folder, for an error of deltalake, which does not."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except Exception as error:
        if not isinstance(error, (DeltaError, OSError)) and type(error) is not Exception:
            raise
        if not isinstance(error, OSError):
            reason = str(error).partition("\n")[0]  # the next lines are the stacks of its threads
        elif isinstance(error, LakeError) or error.errno is not None:
            raise
        else:
            reason = one_line(error)
        raise LakeError(
            f"expected that deltalake reads and writes the Delta table in {store.location(folder)}, got its error "
            f"{reason!r}; earlier commits stay: remove the cause and repeat the write"
        ) from error
