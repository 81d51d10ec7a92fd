"""Messages to row changes, one message at a time: `decode`, and functions for pandas code of your own."""
