"""Calls JVM methods with few py4j round trips."""
