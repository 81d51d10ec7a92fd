"""`python -m wireformat`: the command line."""

from .cli.__main__ import main

main()
