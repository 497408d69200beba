"""Spark's plans: reading them, their facts and types, and building new ones."""
