"""Committed transactions: from row changes in stream order to those of committed transactions, in commit order."""
