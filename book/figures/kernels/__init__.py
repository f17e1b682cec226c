"""Figures of the chapter on kernels."""
