"""Runs the command, as its script and as `python -m wireformat.cli`."""

from __future__ import annotations

import sys

from ..errors import MissingExtra, needs


def main() -> None:
    """Runs the command; without the extra cli, says how to install it."""
    try:
        with needs("cli", "the command"):
            from .main import run

            run()
    except MissingExtra as error:
        sys.exit(f"wireformat: {error}")
    except KeyboardInterrupt:  # while modules are loaded; later, `exit_codes` catches it
        sys.exit(130)


if __name__ == "__main__":
    main()
