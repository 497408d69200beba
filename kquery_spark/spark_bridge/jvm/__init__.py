"""Calls into the JVM, in few round trips."""
