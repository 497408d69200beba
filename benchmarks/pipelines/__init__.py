"""The pipelines suite: generated sources, jobs as people write them in PySpark, and the comparison of their results."""
