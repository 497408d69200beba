"""What of queries that Spark ran, or would run, the engine could take over, and the time that this should save."""
