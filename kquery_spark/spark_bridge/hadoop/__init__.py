"""Hadoop's filesystems, settings, and logins."""
