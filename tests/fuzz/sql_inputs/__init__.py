"""Runs Spark's own SQL test inputs (``sql-tests/inputs`` of a Spark checkout) in Spark and in the engine."""
