"""Tests of `wireformat.Capture`."""
