"""The type catalogue."""
