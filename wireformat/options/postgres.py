"""The options of PostgreSQL's test_decoding that shape its text, with the plugin's defaults.

Its others choose what is sent (only-local, include-rewrites, stream-changes) or declare it (force-binary); they change
no record's text. Source: PostgreSQL's test_decoding.
"""

from __future__ import annotations

from .kinds import Switch
from .spec import Option

TEST_DECODING_OPTIONS = (
    Option("include-xids", True, Switch(), "Adds the transaction id to records."),
    Option("include-timestamp", False, Switch(), "Adds the time to records that end a transaction."),
    Option("skip-empty-xacts", False, Switch(), "Leaves out transactions and streamed blocks without changes."),
)
