"""The names that Spark gives columns without an alias: the expression, printed in Spark's own way."""
