"""Sort keys, and sorting of more rows than fit into the memory budget."""
