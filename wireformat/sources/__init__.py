"""Where messages come from: files, Arrow data and Python iterables, as batches of messages in order."""
