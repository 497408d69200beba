"""Vectorized algorithms over arrays, with numpy and numba. They do not depend on functions or plans."""
