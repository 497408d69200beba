"""Access to HDFS, with Kerberos or without."""
