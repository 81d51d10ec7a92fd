"""A live slot as a stream of Spark: `spark.readStream.format("wireformat")`.

options        the options of the stream
transactions   whole transactions that have arrived, and slices of them that can be read by themselves
ranges         the transactions of a slot between two positions, the same again after a restart
described      the columns of a published table, from the server's catalogue
reader         what Spark calls: offsets on the driver, rows in the workers
"""
