"""Messages to frames, bytes to messages."""
