"""Tests of wireformat/arrow/engine."""
