"""Relations: what a scan knows of tables before it reads a row, or has learned from earlier rows."""
