"""Bytes to notes: the compiled walk over a batch of messages, and what it writes down about every record."""
