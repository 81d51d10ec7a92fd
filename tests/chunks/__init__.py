"""Captures that are read in chunks."""
