"""Prefetches byte ranges of files on other filesystems, such as object stores."""
