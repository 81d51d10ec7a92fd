"""Whole streams: messages in order, modes of bad input, bytes cut anywhere."""
