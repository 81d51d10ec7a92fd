"""Committed rows and typed tables from the notes of a scan, without the row-change table between them."""
