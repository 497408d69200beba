"""Deleted rows of tables: deletion vectors, position deletes, and equality deletes."""
