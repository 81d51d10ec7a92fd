"""The format `fixed-width`: its row. It loads neither the declaration nor the scan."""

from wireformat.formats.row import FormatRow, Scan

ROW = FormatRow(
    name="fixed-width",
    sentence="A made-up format: rows in columns of fixed widths",
    format="fixed_width.declaration:FIXED_WIDTH",
    framing="wireformat.framing.frames",
    order="serial",
    types="postgresql",
    signatures=(rb"(?:INSERT|UPDATE|DELETE) .{32}[+-]", "begin", "commit", "commit at a time", "bare commit"),
    cannot_say=("facts", "empty tuples", "unsent values", "no messages, blocks or relations", "heartbeat", "lsn"),
    scan=Scan("fixed_width.scan:scan_fixed_width", lines="wireformat.grammar.lines:TEST_DECODING"),
)
