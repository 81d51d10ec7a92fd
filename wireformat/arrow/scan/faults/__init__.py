"""Compiled walks that find what is wrong with records that the scan has declined."""
