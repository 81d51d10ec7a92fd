"""How this package compiles with numba: the cache, linking, and single machine instructions."""
