"""Real PostgreSQL servers: started for a test run, with a workload and readings of its changes."""
