"""The DataFrame that ``kquery_plan`` returns: how its actions get their rows, and what happens when the engine fails."""
