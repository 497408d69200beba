"""Qualification decides which parts of Spark's queries the engine would run, and estimates the time saved."""
