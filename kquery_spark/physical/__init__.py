"""What runs: compiled expressions, accumulators and operators over batches."""
