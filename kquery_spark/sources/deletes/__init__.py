"""Removes the deleted rows of Delta and Iceberg tables: deletion vectors, position deletes, and equality deletes."""
