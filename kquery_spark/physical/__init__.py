"""The execution engine: compiled expressions, accumulators, and operators over batches."""
