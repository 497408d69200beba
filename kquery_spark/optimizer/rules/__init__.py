"""One rule a file: a function from plan to plan with its name, and before/after in its docstring."""
