"""Scan and declaration: the same rows and the same words for every input."""
