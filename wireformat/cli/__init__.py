"""The command `wireformat`: show, decode, formats."""
