"""Python functions of users: UDFs, table functions, and their arguments and results."""
