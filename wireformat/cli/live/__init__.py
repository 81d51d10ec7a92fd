"""The commands for a live slot: check, follow.

commands   the commands that can be typed
follow     what they do
"""
