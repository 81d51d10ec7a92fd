"""Builds the wheel and the source distribution, and checks them: `python -m tools.release`."""
