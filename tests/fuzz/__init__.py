"""Seeded loops that look for bytes on which the promises break, one a format."""
