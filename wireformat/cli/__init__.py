"""The command `wireformat`.

main, commands, options   the commands that can be typed, and the options that they share
show, convert             what the commands for messages do
tree, page                what `wireformat inspect` does
decoding                  `wireformat decode`, and the records of inputs
captures, follow          what the commands for a stream as a whole do, and those for a live slot
server_options            what `wireformat options` does
inputs, output            files and standard input, and their format; files and standard output, and rows in each format
screen                    text on a terminal
exits                     how a command ends: exit codes and errors
"""
