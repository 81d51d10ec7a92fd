"""The command `wireformat`.

main, options                the commands that can be typed, and the options that they share
captures, live               commands for a stream as a whole, and for a live slot, in folders
show, convert, inspection    what the commands for messages do
decoding                     `wireformat decode`, and the records of inputs
server_options               what `wireformat options` does
inputs                       files and standard input
client_line                  events as lines of the openGauss client
output, table_writers        files and standard output, and rows in each of their formats
screen                       text on a terminal
exits                        how a command ends: exit codes and errors
"""
