"""Bytes cut anywhere."""
