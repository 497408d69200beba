"""The build side of joins."""
