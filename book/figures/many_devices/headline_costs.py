"""GPU-hours of training the notes' GPT-2s, by the cost model."""

from __future__ import annotations

from lsa.cost import PEAKS, update_flops
from lsa.gpt import GPTConfig, gpt_config

from ..lib.format import in_words
from ..lib.records import NotMeasuredError, have
from ..lib.tables import Table
from ..three_modes.block_speed import least_seconds, lengths, seconds

GPU, DEVICES = "H100 SXM", 8
CONTEXTS = (1024, 16384, 131072)
BIG = ("124M", "355M", "774M", "1.5B")
VOCABULARY = 50257
TOKENS = 20  # a parameter, as Hoffmann et al. (2022) found to use arithmetic best


def shape(scale: str, context: int, attention: str) -> GPTConfig:
    """The model, with GPT-2's vocabulary."""
    options = {"mode": "chunked"} if attention == "linear" else {}
    return gpt_config(
        scale, vocab_size=VOCABULARY, n_positions=context, attention=attention,
        attention_options=options,
    )  # fmt: skip


def tokens(scale: str) -> int:
    """Read in training: by the parameters outside of the embeddings' tables."""
    config = gpt_config(scale)
    return TOKENS * 12 * config.n_layer * config.d_model**2


def least_hours(scale: str, context: int, attention: str) -> float:
    """GPU-hours if every operation ran at the data sheet's speed."""
    flops = update_flops(shape(scale, context, attention), context) * tokens(scale)
    return flops / PEAKS[GPU].flops / 3600


def hours(number: float) -> str:
    """As a table has them."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def shares() -> list[float]:
    """Measured over least seconds of a block, on what it was timed on. Raises NotMeasuredError."""
    found = [
        seconds(run["config"]["scale"], mode, length) / least_seconds(run, mode, length)
        for run in have("block_speed")
        for mode in ("softmax", "chunked")
        for length in lengths(run["config"]["scale"], mode)
    ]
    if not found:
        raise NotMeasuredError("block_speed")
    return found


def table() -> Table:
    """Least GPU-hours of both attentions, and hours on eight devices, by scale and context."""
    cells = []
    for scale in BIG:
        for context in CONTEXTS:
            softmax, linear = (least_hours(scale, context, a) for a in ("softmax", "linear"))
            cells.append(
                [scale, f"{context:,}", f"{tokens(scale) / 1e9:.1f}", hours(softmax),
                 hours(linear), f"{softmax / linear:.1f}"]
            )  # fmt: skip
    titles = ["model", "context", "tokens, 10⁹", "softmax, GPU-hours", "linear, GPU-hours", "ratio"]
    return Table(titles, cells, align="lrrrrr", wrap=True)


def numbers() -> dict[str, str]:
    """How far times lie above the least on the processor measured, and the table's ends."""
    return in_words(
        tokens_each=lambda: TOKENS,
        over_least=lambda: f"{min(shares()):.1f} to {max(shares()):.1f}",
        dearest=lambda: f"{least_hours('1.5B', 131072, 'softmax'):,.0f}",
        dearest_linear=lambda: f"{least_hours('1.5B', 131072, 'linear'):,.0f}",
        days_on_eight=lambda: f"{least_hours('1.5B', 131072, 'softmax') / 24 / DEVICES:.1f}",
    )
