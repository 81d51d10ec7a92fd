"""Where records begin and end: from messages to frames, and from bytes cut anywhere to messages."""
