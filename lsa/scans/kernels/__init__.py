"""Triton kernels for scans."""
