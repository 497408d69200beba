"""``ExecutionContext`` and open plans: SQL and DataFrames of the engine's own, in this process or on Spark."""
