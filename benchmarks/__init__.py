"""Benchmarks of wireformat and spark_udfs: `make bench`, or `python -m benchmarks`; README.md says how to read them."""
