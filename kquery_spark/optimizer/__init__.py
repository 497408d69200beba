"""The optimizer: applies rules to a logical plan in a fixed order. Rules can be disabled, and each result is recorded."""

from kquery_spark.optimizer.optimizer import RULES, Step, optimize, optimize_steps

__all__ = ["RULES", "Step", "optimize", "optimize_steps"]
