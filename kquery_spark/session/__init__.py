"""The session: a query from Spark, SQL or the DataFrame API is planned, explained and run, or left to Spark."""
