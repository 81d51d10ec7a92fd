"""Captures that are read in chunks, each without the others: what distributed programs such as Spark need."""
