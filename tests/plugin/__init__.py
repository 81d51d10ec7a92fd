"""Tests of wireformat.plugin."""
