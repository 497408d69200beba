"""The rule optimizer: ordered rules over logical plans, each switchable and traced."""

from kquery_spark.optimizer.optimizer import RULES, Step, optimize, optimize_steps

__all__ = ["RULES", "Step", "optimize", "optimize_steps"]
