"""Reads Spark's plans with their facts and types, and builds new ones."""
