"""The three modes as Triton kernels."""
