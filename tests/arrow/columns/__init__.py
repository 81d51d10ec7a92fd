"""Tests of wireformat/arrow/columns."""
