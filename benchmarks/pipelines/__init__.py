"""Jobs as people write them in PySpark: generated sources, the steps, and the comparison of what they write."""
