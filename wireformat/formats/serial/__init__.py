"""The formats of the serial plugins, and what they share."""
