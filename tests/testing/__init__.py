"""The test double of a server."""
