"""The bytes of ASCII that compiled code looks for or writes, by name."""

from __future__ import annotations

LINE_FEED = ord("\n")
SPACE, QUOTE, APOSTROPHE, OPEN_PARENTHESIS, CLOSE_PARENTHESIS = b" \"'()"
PLUS, COMMA, MINUS, DOT, SLASH = b"+,-./"
DIGIT_0, DIGIT_1, DIGIT_9, COLON, SEMICOLON = b"019:;"
UPPER_A, UPPER_B, UPPER_F = b"ABF"
OPEN_BRACKET, BACKSLASH, CLOSE_BRACKET = b"[\\]"
LOWER_A, LOWER_E, LOWER_F, LOWER_T, LOWER_U, LOWER_X, LOWER_Z = b"aeftuxz"
OPEN_BRACE, CLOSE_BRACE, EQUALS = b"{}="

MOST_DIGITS = 18
"""A number of this many digits always fits in an int64."""

CASE_BIT = LOWER_A - UPPER_A
"""The bit that tells a small letter from a capital one."""
