"""Aggregate functions and window functions."""
