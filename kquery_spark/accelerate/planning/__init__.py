"""From Spark's plan of a query to the parts that the engine runs, and whether that is worth it."""
