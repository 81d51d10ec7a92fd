"""Tests of `wireformat.arrow.latest`."""
