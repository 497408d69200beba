"""Spark's optimized plans: reading them from the JVM and importing them as logical plans of the engine."""
