"""Accelerates Spark DataFrames: ``kquery_plan``, ``kq.enable``, SQL writes, ``kq.explain``, events and metrics."""
