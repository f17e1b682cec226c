"""The three modes as Triton kernels. Only plain and segments can be imported without Triton."""
