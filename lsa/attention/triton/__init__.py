"""The three modes as Triton kernels. Only tuning/segments.py can be imported without Triton."""
