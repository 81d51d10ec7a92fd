"""The grammar of the text formats, on bytes: characters are decoded last, field by field, in the server's encoding.

Bytes come first because a server writes quotes and escapes byte by byte: in GBK the second byte of a character may be a
backslash. A double or single quote it can never be, in no encoding that extends ASCII and that a server can have.
"""
