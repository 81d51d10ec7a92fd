"""The grammar of the text formats, part by part."""
