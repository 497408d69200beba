"""A Spark DataFrame in, the same DataFrame with as much of it as possible run by the engine out."""
