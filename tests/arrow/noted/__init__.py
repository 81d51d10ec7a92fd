"""Tests of wireformat.arrow.noted."""
