"""A live slot: a real server, and one that is made up."""
