"""The family of layers as one table, computed from the layers themselves."""

from __future__ import annotations

from typing import NamedTuple

from lsa.layers import LAYERS, make_layer
from lsa.layers.layer import Layer

from ..lib import tasks
from ..lib.records import Record
from ..lib.tables import Table, link

WIDTH, LENGTH = 64, 1024
TASKS = ("selective copying", "overwriting", "recall")

# Layers that a chapter distinguishes by an option, under their names in the made-up tasks.
VARIANTS = {"gla": ("gated", {"decay": "channel"}), "gated-delta": ("delta", {"gated": True})}


class Member(NamedTuple):
    """A layer's decay, its write, its read, and its section.

    selective: whether the decay depends on the input.
    """

    decay: str
    written: str
    read: str
    selective: bool
    training: str
    section: str


SOFTMAX, LINEAR = "linear-self-attention.html", "linear-self-attention.html#the-causal-case-a-state"
RELATIVES, SPACES = "relatives.html#", "state-spaces.html#"
# The layers that chapters describe, each variant below the layer that it varies. Other layers need
# no line here.
MEMBERS = {
    "softmax": Member("1", "k and v, kept apart", "softmax of q·k", False, "T²D", SOFTMAX),
    "linear": Member("1", "φ(k) vᵀ", "φ(q), normalised", False, "TND", LINEAR),
    "taylor": Member(
        "1", "φ(k) vᵀ", "φ(q), normalised", False, "T²D",
        "linear-self-attention.html#taylor-sums-of-the-exponential",
    ),
    "power": Member(
        "1", "φₚ(k) vᵀ", "φₚ(q), normalised", False, "T²D", RELATIVES + "power-attention"
    ),
    "aft-full": Member(
        "exp(w), by positions", "exp(k), v", "gate, normalised", False, "T²D",
        RELATIVES + "attention-free-transformers",
    ),
    "aft-local": Member(
        "exp(w) by distance, then 1", "exp(k), v", "gate, normalised", False, "TsD",
        RELATIVES + "attention-free-transformers",
    ),
    "aft-simple": Member(
        "1", "exp(k), v", "gate, normalised", False, "TD",
        RELATIVES + "attention-free-transformers",
    ),
    "rwkv": Member(
        "exp(−w), a channel", "exp(k), v", "gate, normalised", False, "TD", RELATIVES + "rwkv"
    ),
    "gated": Member("αᵢ, a head", "k vᵀ", "q", True, "TND", RELATIVES + "gates"),
    "gla": Member("αᵢ, a key channel", "k vᵀ", "q", True, "TND", RELATIVES + "gates"),
    "delta": Member("I − β k kᵀ", "β k vᵀ", "q", True, "TND", RELATIVES + "the-delta-rule"),
    "gated-delta": Member(
        "αᵢ (I − β k kᵀ)", "β k vᵀ", "q", True, "TND", RELATIVES + "the-delta-rule"
    ),
    "s4": Member(
        "Ā, a matrix", "B̄ u", "C", False, "TD log T",
        SPACES + "s4-which-a-and-how-to-afford-it",
    ),
    "s4d": Member(
        "Ā, diagonal", "B̄ u", "C", False, "TD log T", SPACES + "s4d-only-the-diagonal"
    ),
    "s6": Member("exp(Δᵢ a)", "Δᵢ Bᵢ u", "Cᵢ", True, "TND", SPACES + "selection"),
    "mamba": Member(
        "exp(Δᵢ a)", "Δᵢ Bᵢ u", "Cᵢ and a gate", True, "TND", SPACES + "the-mamba-block"
    ),
    "rnn": Member(
        "through tanh", "u", "U", True, "TD²", "sequence-transformations.html"
    ),
    "kgram": Member("after k tokens", "u", "an MLP", False, "TkD²", "causal-transformations.html"),
    "conv": Member("after a few tokens", "u", "a kernel", False, "TD", SPACES + "the-mamba-block"),
    "window": Member(
        "after w tokens", "k and v, kept apart", "softmax of q·k", False, "TwD",
        "trained-model.html#the-first-tokens-must-stay",
    ),
    "window-state": Member(
        "1", "k and v, after w tokens φ(k) vᵀ", "softmax and φ(q), normalised", False,
        "T(w + N)D", "trained-model.html#what-hybrids-make-of-it",
    ),
    "none": Member("no state", "–", "–", False, "–", "relatives.html"),
}  # fmt: skip


def _layer(name: str) -> Layer:
    """A layer of width 64, with one head."""
    kind, options = VARIANTS.get(name, (name, {}))
    return make_layer(kind, WIDTH, 1, max_length=LENGTH, options=options)


def state_numbers(name: str) -> int:
    """Numbers in such a layer's state after 1,024 tokens."""
    return _layer(name).state_numbers(LENGTH)


def tick_flops(name: str) -> int:
    """FLOPs of such a layer for the 1,024th token, without its projections."""
    return _layer(name).tick_flops(LENGTH)


def _row(name: str, shares: list[str]) -> list[str]:
    """A row of the table. State and tick come from the layer; missing descriptions are dashes."""
    label, state = tasks.label(name), f"{state_numbers(name):,}"
    tick = f"{tick_flops(name):,}"
    if name not in MEMBERS:
        return [label, "–", "–", "–", "–", state, "–", tick, *shares]
    member = MEMBERS[name]
    return [
        link(label, member.section),
        member.decay,
        member.written,
        member.read,
        "yes" if member.selective else "no",
        state,
        member.training,
        tick,
        *shares,
    ]


def shares() -> dict[str, list[str]]:
    """Share right of each layer at the hardest of each task, mean over seeds; dashes elsewhere."""
    names = (*MEMBERS, *(name for name in LAYERS if name not in MEMBERS))
    every = [tasks.of_usual_size(tasks.at_best_rates(task)) for task in TASKS]
    return {name: [_share(runs.get(name, [])) for runs in every] for name in names}


def _share(runs: list[Record]) -> str:
    right = [tasks.longest(run) for run in runs if tasks.answers(run)]
    return tasks.with_range(tasks.share(right)) if right else "–"


def table() -> Table:
    """All layers of the catalogue: decay, write, read, state, cost and scores."""
    cells = [_row(name, shown) for name, shown in shares().items()]
    titles = ["layer", "decay", "written", "read by", "selective", "state", "training", "a token"]
    return Table([*titles, *TASKS], cells, align="lllllrlrrrr", wrap=True)
