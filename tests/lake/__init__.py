"""Lakes: all tables of a stream as Parquet files or Delta tables."""
