"""The commands of a live slot."""
