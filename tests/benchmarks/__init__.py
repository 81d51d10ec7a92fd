"""Tests of the benchmarks: what is compared must say the same."""
