"""The Substrait frontend: reads the plans of other engines, and writes plans for them. Needs the package ``substrait``."""
