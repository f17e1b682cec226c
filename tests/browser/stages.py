"""Where the stages stand in the book, and how a test reads and sets one."""

from __future__ import annotations

PLACES = {
    "opener": "book/index.html",
    "shares": "book/sequences.html",
    "tree": "book/sequences.html",
    "signature": "book/sequence-transformations.html",
    "causality": "book/causal-transformations.html",
    "diagram-causal": "book/causal-transformations.html",
    "diagram-machines": "book/state-machines.html",
    "machines": "book/state-machines.html",
    "memory": "book/linear-self-attention.html",
    "modes": "book/three-modes.html",
    "roofline": "book/three-modes.html",
    "chip": "book/kernels.html",
    "sampler": "book/sampling.html",
    "film": "book/training.html",
    "recurrence": "book/relatives.html",
    "convolution": "book/state-spaces.html",
}


def line(frame):
    return frame.locator("[role=status]").inner_text()


def slide(frame, name, values, value):
    frame.get_by_role("slider", name=name).fill(str(list(values).index(value)))
