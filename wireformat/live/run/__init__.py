"""A run of `follow`.

follower   connects, copies tables and writes batches until there is a reason to stop
retries    when a lost connection is made again, and when the run gives up
reports    the progress of the run, and what the server says meanwhile
"""
