"""Tests of wireformat/arrow/jit."""
