"""The syntax tree: expressions, relations, queries and types, all unresolved."""
