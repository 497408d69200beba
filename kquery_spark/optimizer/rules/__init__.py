"""The optimizer rules. Each file has one rule: a function of the same name from plan to plan, with an example."""
