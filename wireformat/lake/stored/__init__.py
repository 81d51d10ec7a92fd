"""What is stored in the folder of a lake, and under which names.

store      files that are either complete or absent, in any file system
manifest   which files belong to the lake, and its position
names      the names of folders and columns
schema     the columns of a table as they are stored
"""
