"""Dates, timestamps, times, and intervals."""
