"""Spark: every way in gives the same rows, options and errors speak clearly, sessions start."""
