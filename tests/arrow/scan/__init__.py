"""Tests of wireformat/arrow/scan."""
