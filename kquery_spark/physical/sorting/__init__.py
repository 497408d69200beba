"""Sort keys, and sorting past the memory budget."""
