"""Reading files on other filesystems ahead of their use."""
