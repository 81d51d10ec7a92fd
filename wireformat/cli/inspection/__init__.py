"""What `wireformat inspect` does, and the guess of a format.

tree      prints the bytes of records beside what they mean
page      writes a page of HTML with all records
guessed   the format of inputs if the command names none
"""
