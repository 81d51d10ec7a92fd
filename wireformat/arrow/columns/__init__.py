"""Notes and events to the columns of the row-change table."""
