"""The command line, and the examples that it and Spark read."""
