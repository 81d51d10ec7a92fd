"""`python -m wireformat.cli`: the command `wireformat` where its script is not on the PATH."""

from .main import main

main()
