"""Timing, CUDA graphs, compiled kernels and their errors."""
