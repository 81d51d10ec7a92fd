"""The documentation site: what it is made of, and that it is built."""
