"""Tests of wireformat/arrow/typed_tables."""
