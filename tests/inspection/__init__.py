"""The inspector: trees of messages, on good bytes and on bad ones."""
