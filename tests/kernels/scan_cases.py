"""Random calls of the selective scan, and how far the kernels are from plain torch in float64."""

import torch

from lsa.scans.selective_plain import in_chunks
from tests.helpers import relative_rms

NAMES = ("u", "delta", "A", "B", "C")


def draw(B, T, D, N, dtype, *, device="cpu", contiguous=True, decay=1.0, seed=0):
    """u, Δ, A, B, C, then dy, h_0 and dh_T. A and the states are float32, as in the layer.

    decay: about how much Δ A is.
    """
    g = torch.Generator(device).manual_seed(seed)

    def new(make, *shape):
        return make(shape, generator=g, device=device)

    def row(make, width):
        if contiguous:
            return new(make, B, T, width).to(dtype)
        return new(make, B, width, T, 2).to(dtype)[..., 0].transpose(1, 2)

    A = -0.1 - 2 * decay * new(torch.rand, D, N)
    rows = row(torch.randn, D), row(torch.rand, D), row(torch.randn, N), row(torch.randn, N)
    u, delta, b, c = rows
    states = new(torch.randn, B, D, N), new(torch.randn, B, D, N)
    return [u, delta, A, b, c, row(torch.randn, D), *states]


def exactly(inputs, rule, *, first, last):
    """y, h_T, then the gradients of u, Δ, A, B, C and h_0, in float64."""
    *x, dy, h, dh = (y.double() for y in inputs)
    h = h if first else torch.zeros_like(h)
    leaves = [y.requires_grad_() for y in (*x, h)]
    y, h_T = in_chunks(*leaves, input_rule=rule, mode="steps", chunk_size=max(1, dy.shape[1]))
    given = (dy, dh) if last else (dy, torch.zeros_like(dh))
    return [y, h_T, *torch.autograd.grad((y, h_T), leaves, given)]


def errors(kernels, inputs, rule="euler", *, first=True, last=True, cut=None):
    """The relative RMS error of every result of a call of the kernels and of its gradient."""
    *x, dy, h, dh = inputs
    problem = kernels.Problem(*x, h if first else None, rule)
    y, h_T, kept = kernels.forward(problem, keep=True, cut=cut)
    found = [y, h_T, *kernels.backward(problem, kept, dy, dh if last else None, cut=cut)]
    exact = exactly(inputs, rule, first=first, last=last)
    names = ("y", "h_T", *(f"d{name}" for name in NAMES), "dh_0")
    assert [one.dtype for one in found[2:7]] == [x[0].dtype, x[1].dtype, x[2].dtype,
                                                  x[3].dtype, x[4].dtype]  # fmt: skip
    return {
        name: relative_rms(one, other) for name, one, other in zip(names, found, exact, strict=True)
    }
