"""Where stages run: in this process, or on Spark."""
