"""The options of PostgreSQL's test_decoding that shape its text, with the plugin's defaults.

Its others choose what is sent (only-local, include-rewrites, stream-changes) or declare it (force-binary); they change
no record's text. Source: PostgreSQL's test_decoding.
"""

from __future__ import annotations

from .kinds import Switch
from .spec import Option

TEST_DECODING_OPTIONS = (
    Option("include-xids", True, Switch(), "Records carry the transaction id."),
    Option("include-timestamp", False, Switch(), "Records that end a transaction carry the time."),
    Option("skip-empty-xacts", False, Switch(), "Transactions and streamed blocks without changes are left out."),
)
