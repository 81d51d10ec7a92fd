"""Committed changes to a table's own columns."""
