"""Compiling with numba: the cache, linking, and functions of single machine instructions."""
