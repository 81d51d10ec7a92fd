"""The compiled engine: its input, its room, its cache, its columns."""
