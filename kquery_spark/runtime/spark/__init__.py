"""Stages on Spark: map and reduce tasks through ``mapInArrow``, with Spark's shuffle in between.

Nothing is imported here: workers import ``worker`` alone.
"""
