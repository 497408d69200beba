"""The Substrait frontend: plans that other engines exchange, in and out, by the optional package ``substrait``."""
