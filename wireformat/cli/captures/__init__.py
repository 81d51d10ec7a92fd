"""The commands that read a stream as a whole, as `wireformat.Capture`: tables, typed, latest, write."""
