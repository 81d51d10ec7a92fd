"""Compiled functions that read DDL of the serial plugins."""
