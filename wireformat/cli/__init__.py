"""The command `wireformat`: what can be typed, what each command does, and how it ends."""
