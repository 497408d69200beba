"""The parts of a hash join: the join table of the build side, the probe, residual conditions, and spilling."""
