"""Row changes to those of committed transactions, in commit order."""
