"""The formats: golden captures, round trips, bad input."""
