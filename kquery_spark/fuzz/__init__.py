"""The fuzzer: runs random queries over random tables in Spark and in the engine, and shrinks the cases that differ."""
