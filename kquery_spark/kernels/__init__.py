"""Kernels over arrays by topic: numpy and numba, with no idea of functions or plans."""
