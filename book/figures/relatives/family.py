"""The family of layers as one table, read off the layers themselves."""

from __future__ import annotations

from typing import NamedTuple

from lsa.layers import LAYERS, make_layer
from lsa.layers.layer import Layer

from ..lib import tasks
from ..lib.tables import Table, link
from . import synthetic_tasks

WIDTH, LENGTH = 64, 1024


# Layers that a chapter tells apart by an option, as the made-up tasks call them.
VARIANTS = {"gla": ("gated", {"decay": "channel"}), "gated-delta": ("delta", {"gated": True})}


class Member(NamedTuple):
    """How a layer's state fades, what is written, how it is read; and its section.

    selective: whether what it forgets depends on what it reads.
    """

    fades: str
    written: str
    read: str
    selective: bool
    training: str
    section: str


SOFTMAX, LINEAR = "linear-self-attention.html", "linear-self-attention.html#the-causal-case-a-state"
RELATIVES, SPACES = "relatives.html#", "state-spaces.html#"
# Table of a chapter's layers, each variant below the layer that it differs from. One that no
# chapter tells of needs no line here.
MEMBERS = {
    "softmax": Member("never", "k and v, kept apart", "softmax of q·k", False, "T²D", SOFTMAX),
    "linear": Member("never", "k vᵀ", "q, normalised", False, "TND", LINEAR),
    "taylor": Member(
        "never", "φ(k) vᵀ", "φ(q), normalised", False, "T²D",
        "linear-self-attention.html#taylor-sums-of-the-exponential",
    ),
    "power": Member(
        "never", "φₚ(k) vᵀ", "φₚ(q), normalised", False, "T²D", RELATIVES + "power-attention"
    ),
    "aft-full": Member(
        "by position", "exp(k), v", "gate, normalised", False, "T²D",
        RELATIVES + "attention-free-transformers",
    ),
    "aft-local": Member(
        "by position, near", "exp(k), v", "gate, normalised", False, "TsD",
        RELATIVES + "attention-free-transformers",
    ),
    "aft-simple": Member(
        "never", "exp(k), v", "gate, normalised", False, "TD",
        RELATIVES + "attention-free-transformers",
    ),
    "rwkv": Member(
        "fixed, a channel", "exp(k), v", "gate, normalised", False, "TD", RELATIVES + "rwkv"
    ),
    "gated": Member("from the input, a head", "k vᵀ", "q", True, "TND", RELATIVES + "gates"),
    "gla": Member("from the input, a channel", "k vᵀ", "q", True, "TND", RELATIVES + "gates"),
    "delta": Member("along k", "β k vᵀ", "q", True, "TND", RELATIVES + "the-delta-rule"),
    "gated-delta": Member(
        "along k, and from the input", "β k vᵀ", "q", True, "TND", RELATIVES + "the-delta-rule"
    ),
    "s4": Member(
        "fixed matrix", "B u", "C", False, "TD log T",
        SPACES + "s4-which-a-and-how-to-afford-it",
    ),
    "s4d": Member(
        "fixed, a number", "B u", "C", False, "TD log T", SPACES + "s4d-only-the-diagonal"
    ),
    "s6": Member("from the input", "Δ B u", "C, from the input", True, "TND", SPACES + "selection"),
    "mamba": Member(
        "from the input", "Δ B u", "C and a gate", True, "TND", SPACES + "the-mamba-block"
    ),
    "rnn": Member(
        "through tanh", "u", "U", True, "TD²", "sequence-transformations.html"
    ),
    "kgram": Member("after k tokens", "u", "an MLP", False, "TkD²", "causal-transformations.html"),
    "conv": Member("after a few tokens", "u", "a kernel", False, "TD", SPACES + "the-mamba-block"),
    "none": Member("no state", "–", "–", False, "–", "relatives.html"),
}  # fmt: skip


def _layer(name: str) -> Layer:
    """A layer of width 64, with one head."""
    kind, options = VARIANTS.get(name, (name, {}))
    return make_layer(kind, WIDTH, 1, max_length=LENGTH, options=options)


def state_numbers(name: str) -> int:
    """Numbers that such a layer keeps after 1,024 tokens."""
    return _layer(name).state_numbers(LENGTH)


def tick_flops(name: str) -> int:
    """FLOPs of such a layer for the 1,024th token, without its projections."""
    return _layer(name).tick_flops(LENGTH)


def _row(name: str, shares: list[str]) -> list[str]:
    """One layer. State and tick it tells itself; what a chapter says is a dash without one."""
    label, state = tasks.label(name), f"{state_numbers(name):,}"
    tick = f"{tick_flops(name):,}"
    if name not in MEMBERS:
        return [label, "–", "–", "–", "–", state, "–", tick, *shares]
    member = MEMBERS[name]
    return [
        link(label, member.section),
        member.fades,
        member.written,
        member.read,
        "yes" if member.selective else "no",
        state,
        member.training,
        tick,
        *shares,
    ]


def table() -> Table:
    """Every layer of the catalogue: how it fades, writes and reads, its state, cost and scores."""
    names = (*MEMBERS, *(name for name in LAYERS if name not in MEMBERS))
    shares = synthetic_tasks.mean_shares(names)
    cells = [_row(name, shares[name]) for name in names]
    titles = ["layer", "fades", "written", "read by", "selects", "state", "training", "a token"]
    return Table([*titles, *synthetic_tasks.TASKS], cells, align="lllllrlrrrrr", wrap=True)
