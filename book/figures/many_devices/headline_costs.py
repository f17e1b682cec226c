"""GPU-hours and memory of training the notes' GPT-2s, by the cost model, and the model's error."""

from __future__ import annotations

from lsa.cost import PEAKS, training_memory, update_flops
from lsa.cost.memory import KEPT
from lsa.gpt import GPTConfig, gpt_config

from ..lib.format import in_words, times
from ..lib.records import have, need, of_config, rows
from ..lib.tables import Missing, Table
from ..three_modes.block_speed import least_seconds, seconds

GPU, DEVICES = "H100 SXM", 8
MEMORY = 80e9  # B of this GPU
CONTEXTS = (1024, 16384, 131072)
BIG = ("124M", "355M", "774M", "1.5B")
VOCABULARY = 50257
TOKENS = 20  # a parameter, the best use of arithmetic by Hoffmann et al. (2022)
BATCH = 131072  # tokens of an update, as in the plan of `loss_curves`
MODES = {"softmax": "softmax", "linear": "chunked"}


def shape(scale: str, context: int, attention: str) -> GPTConfig:
    """The model's configuration, with GPT-2's vocabulary."""
    options = {"mode": "chunked"} if attention == "linear" else {}
    return gpt_config(
        scale, vocab_size=VOCABULARY, n_positions=context, attention=attention,
        attention_options=options,
    )  # fmt: skip


def tokens(scale: str) -> int:
    """Training tokens: proportional to the parameters outside the embedding tables."""
    config = gpt_config(scale)
    return TOKENS * 12 * config.n_layer * config.d_model**2


def least_hours(scale: str, context: int, attention: str) -> float:
    """GPU-hours if every operation ran at the data sheet's speed."""
    flops = update_flops(shape(scale, context, attention), context) * tokens(scale)
    return flops / PEAKS[GPU].flops / 3600


def memory(scale: str, context: int) -> int:
    """Bytes on each of eight GPUs that share a batch's tokens; the same for both attentions."""
    return training_memory(
        shape(scale, context, "linear"), BATCH // DEVICES, devices=DEVICES, recompute=False
    )


def hours(number: float) -> str:
    """Hours formatted for a table."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def measured() -> list[tuple[str, int]]:
    """Scales and contexts at which a block was timed with both attentions."""
    timed = []
    for run in have("block_speed"):
        each = [{row["length"] for row in rows(run, mode=mode)} for mode in MODES.values()]
        timed += [(run["config"]["scale"], n) for n in set.intersection(*each)]
    return sorted(timed, key=lambda one: (tokens(one[0]), one[1]))


def over_least(scale: str, context: int, attention: str) -> float:
    """Measured time of a block over the least by the same formula. Raises NotMeasuredError.

    The least assumes the speed of a large matrix product on the measured processor.
    """
    run, mode = of_config(have("block_speed"), scale=scale), MODES[attention]
    return seconds(scale, mode, context) / least_seconds(run, mode, context)


def ratio(scale: str, context: int) -> tuple[float, float]:
    """How many times longer softmax takes: by the formula, and measured."""
    run = of_config(have("block_speed"), scale=scale)
    by_formula = [least_seconds(run, mode, context) for mode in MODES.values()]
    medians = [seconds(scale, mode, context) for mode in MODES.values()]
    return by_formula[0] / by_formula[1], medians[0] / medians[1]


def table() -> Table:
    """Least GPU-hours of both attentions, and memory of each of eight GPUs."""
    cells = []
    for scale in BIG:
        for context in CONTEXTS:
            softmax, linear = (least_hours(scale, context, a) for a in MODES)
            cells.append(
                [scale, f"{context:,}", f"{tokens(scale) / 1e9:.1f}", hours(softmax),
                 hours(linear), f"{softmax / linear:.1f}", f"{memory(scale, context) / 1e9:.0f}"]
            )  # fmt: skip
    titles = [
        "model", "context", "tokens, 10⁹", "softmax, GPU-hours", "linear, GPU-hours",
        "ratio of bounds", "GB on each of eight",
    ]  # fmt: skip
    return Table(titles, cells, align="lrrrrrr", wrap=True)


def error_table() -> Table | Missing:
    """Measured time of a block over its bound, and ratios of both attentions."""
    if not (cases := [one for one in measured() if one[1] in CONTEXTS]):
        return Missing("block_speed")
    cells = []
    for scale, context in cases:
        errors = [f"{over_least(scale, context, attention):.1f}" for attention in MODES]
        cells.append([scale, f"{context:,}", *errors, *(f"{r:.1f}" for r in ratio(scale, context))])
    titles = [
        "block of", "tokens", "softmax, measured over bound", "linear, measured over bound",
        "ratio of bounds", "ratio measured",
    ]  # fmt: skip
    return Table(titles, cells, align="lrrrrr", wrap=True)


def errors(attention: str) -> list[float]:
    """`over_least` of every measured block. Raises NotMeasuredError."""
    cases = need(measured(), "block_speed")  # more lengths than the table shows
    return [over_least(scale, context, attention) for scale, context in cases]


def span(attention: str) -> str:
    """Smallest and largest error, for prose. Raises NotMeasuredError."""
    ratios = errors(attention)
    return f"{times(min(ratios))} to {times(max(ratios))}"


def numbers() -> dict[str, str]:
    """The table's ends, and by how much a processor's times exceed their bounds."""
    dearest = {attention: least_hours(BIG[-1], CONTEXTS[-1], attention) for attention in MODES}
    return in_words(
        tokens_each=lambda: TOKENS,
        batch=lambda: f"{BATCH:,}",
        softmax_over=lambda: span("softmax"),
        linear_over=lambda: span("linear"),
        over_first=lambda: f"{min(length for _, length in need(measured(), 'block_speed')):,}",
        over_last=lambda: f"{max(length for _, length in need(measured(), 'block_speed')):,}",
        kept_bytes=lambda: KEPT,
        dearest=lambda: f"{dearest['softmax']:,.0f}",
        dearest_linear=lambda: f"{dearest['linear']:,.0f}",
        days_on_eight=lambda: f"{dearest['softmax'] / 24 / DEVICES:.1f}",
        linear_days_on_eight=lambda: f"{dearest['linear'] / 24 / DEVICES:.1f}",
    )
