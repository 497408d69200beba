"""Leaf relations of a plan: files, tables, and cached rows."""
