"""Users' Python functions: UDFs, table functions, and the conversion of their arguments and results."""
