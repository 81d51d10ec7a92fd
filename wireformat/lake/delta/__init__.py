"""Delta tables of a lake.

folder     a Delta table: its rows are appended, replaced or deleted, in one commit each
log        what a commit says about the stream, and commits that a power cut has damaged
access     a Delta table as deltalake opens it, and its errors
merge      changes merged into the current rows of a Delta table
"""
