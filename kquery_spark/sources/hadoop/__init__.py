"""HDFS and its logins."""
