"""The SQL functions, and `register`, which makes them known to a session."""
