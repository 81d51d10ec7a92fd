"""Engines turn messages into events and record batches, with the compiled scan or with the declaration of a format."""
