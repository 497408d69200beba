"""Random plans and data, run by Spark and by the engine, with shrinking of what differs."""
