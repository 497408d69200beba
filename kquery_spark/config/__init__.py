"""Settings: what the engine can be told, and what it tells Spark."""
