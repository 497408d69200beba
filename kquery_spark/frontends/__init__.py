"""Where queries come in: SQL text, DataFrames, and the optimized plans of Spark."""
