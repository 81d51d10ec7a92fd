"""A capture on Spark: raw messages in chunks of a stream, a light pass, and one pass for each question."""
