"""The three modes as Triton kernels. Import a module of this package only where Triton is."""
