"""Row changes to messages: events out of rows, and a compiled writer of formats whose rows are layouts and values."""
