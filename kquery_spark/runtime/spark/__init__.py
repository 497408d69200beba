"""Runs stages on Spark: each stage is a ``mapInArrow``, and Spark's shuffle exchanges rows between stages.

This module imports nothing, so that workers load only ``worker``.
"""
