"""Tests of wireformat/arrow/committed."""
