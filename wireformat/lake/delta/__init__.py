"""Delta tables of a lake.

folder     a Delta table: its rows are appended, replaced or deleted, in one commit each
log        what a commit says about the stream, and commits that a power cut has damaged
covered    typed rows that a Delta table already has
merge      changes merged into the current rows of a Delta table
"""
