"""One message of a file, which is found without reading all before it into memory."""
