"""The data source `wireformat`: captures in files in SQL alone, and a live slot as a stream.

data_source    what Spark calls first: it reads captures in files by itself, and has a slot read by `reader`
options        the options of the stream
transactions   whole transactions that have arrived, and slices of them that can be read by themselves
ranges         the transactions of a slot between two positions, the same again after a restart
reader         what Spark calls: offsets on the driver, rows in the workers, the columns from the catalogue
"""
