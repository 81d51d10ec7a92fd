"""Captures of streaming DataFrames."""
