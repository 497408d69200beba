"""Qualification: which parts of Spark's queries the engine would run, and an estimate of the time saved."""
