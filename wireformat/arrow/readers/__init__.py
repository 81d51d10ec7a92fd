"""Readers of the values of a column: compiled ones for the usual forms, and what they have in common with the casts."""
