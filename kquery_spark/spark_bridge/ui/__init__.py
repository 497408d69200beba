"""Spark's UI and event log."""
