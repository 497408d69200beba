"""The DataFrame that ``kquery_plan`` returns: how its actions compute rows, and how they fall back if the engine fails."""
