"""Runs the command: for its script, and as `python -m wireformat.cli` where that is not on the PATH."""

from __future__ import annotations

import sys

from ..errors import MissingExtra
from ..extras import needs


def main() -> None:
    """Run the command; without the extra cli, say how to install it."""
    try:
        with needs("cli", "the command"):
            from .main import run

            run()
    except MissingExtra as error:
        sys.exit(f"wireformat: {error}")
    except KeyboardInterrupt:  # while modules are loaded; afterwards, `exit_codes` takes it
        sys.exit(130)


if __name__ == "__main__":
    main()
