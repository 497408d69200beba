"""Arrow as the type system, with Spark's rules for names, widening and decimals on top."""
