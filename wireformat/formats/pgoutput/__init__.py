"""The format pgoutput: its messages, reading, writing, and the relations that a stream has described."""
