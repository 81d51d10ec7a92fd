"""Tests of wireformat.arrow.written."""
