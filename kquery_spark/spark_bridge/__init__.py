"""The only package that uses py4j, names of JVM classes, and private names of PySpark."""
