"""Typed tables: their columns, and `latest`, the rows of a table as it stands."""
