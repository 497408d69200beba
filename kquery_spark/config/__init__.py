"""Defines the engine's typed settings, the cost model's constants, and the Spark settings that the engine recommends."""
