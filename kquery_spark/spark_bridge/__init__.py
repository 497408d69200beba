"""The one seam to Spark: py4j, JVM classes by name, and names of PySpark that start with ``_`` are touched nowhere else."""
