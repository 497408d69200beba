"""Functions of values of any type: comparisons, conditionals, and logic."""
