"""``ExecutionContext`` and open plans: the engine's own SQL and DataFrame API, in this process or on Spark."""
