"""The three modes as Triton kernels. Only segments can be imported without Triton."""
