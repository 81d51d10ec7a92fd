"""lsn_text and lsn_value, written in SQL, which Spark runs itself and pushes down to files."""

from __future__ import annotations

LSN_FUNCTIONS = (
    """
    CREATE OR REPLACE TEMPORARY FUNCTION lsn_text(lsn BIGINT)
    RETURNS STRING
    COMMENT 'An LSN as the servers print it: 0/CFE5C80. Takes the bigint with the same bits.'
    RETURN concat(hex(shiftrightunsigned(lsn, 32)), '/', hex(lsn & 4294967295))
    """,
    r"""
    CREATE OR REPLACE TEMPORARY FUNCTION lsn_value(text STRING)
    RETURNS BIGINT
    COMMENT 'The bigint with the bits of an LSN such as 0/CFE5C80.'
    RETURN CASE
        WHEN text IS NULL THEN NULL
        WHEN text RLIKE r'^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}\z' THEN
            shiftleft(CAST(conv(split_part(text, '/', 1), 16, 10) AS BIGINT), 32)
            | CAST(conv(split_part(text, '/', 2), 16, 10) AS BIGINT)
        ELSE raise_error(concat(
            'lsn_value: an LSN is two hexadecimal numbers of up to 8 digits with a slash between, got ', text))
    END
    """,
)
"""The SQL statements that create the functions. `wireformat.lsn` does the same in Python."""
