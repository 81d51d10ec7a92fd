"""Typed tables: the changes of one table, in columns of the table's own types."""
