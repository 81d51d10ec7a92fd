"""The commands that read a stream as a whole, as a `wireformat.Capture`: tables, typed, latest, write.

commands          the commands that can be typed
capture_options   the options that they share, and those of lakes
tables, write     what the commands do
opened            the capture that they read
"""
