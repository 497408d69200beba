"""The inputs of the engine: SQL, DataFrames, and the optimized plans of Spark."""
