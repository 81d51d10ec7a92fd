"""What must be right before a stream starts, each with what to do about it."""
