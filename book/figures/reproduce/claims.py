"""The claims of the drafts and papers beside what was measured here, with a verdict on each."""

from __future__ import annotations

from collections.abc import Callable

from lsa.cost.modes import mode_cost

from ..index import loss_curves, mode_speed, race, race_words, sampling_speed
from ..lib.format import NOT_MEASURED, duration, in_words, signed, times
from ..lib.records import NotMeasuredError, have
from ..lib.seeds import seeds_in_words
from ..lib.tables import Marked, Table
from ..linear_self_attention import variants
from ..sequence_transformations import rnn_orders
from ..three_modes.chunk_sizes import best
from ..training import scaling, state_words
from .verdicts import SLIGHTLY, at, slightly_worse

CONTEXTS = (256, 2048, 4096)
PLATEAU_FROM = 1024  # bytes of context, where no head fades
LONG = 16384  # tokens


def table() -> Table:
    """Claim, where it is made, what was measured, on which page, and whether it holds."""
    cells = []
    for claim, source, measured, page, holds in CLAIMS:
        words = in_words(measured=measured, verdict=lambda holds=holds: _said(holds()))
        if words["verdict"] == NOT_MEASURED:
            words["measured"] = "–"
        cells.append([claim, source, words["measured"], Marked(page), words["verdict"]])
    titles = ["claim", "source", "measured", "page", "verdict"]
    return Table(titles, cells, align="lllll", wrap=True)


def _nobody() -> str:
    raise NotMeasuredError("nobody has measured it here")


def _two_hundred_times() -> str | bool:
    if mode_speed.passes(200) == (65536, 131072):
        return "holds for the layer alone; no update of a model was timed at such a length"
    return False


def _said(verdict: bool | str) -> str:
    if isinstance(verdict, str):
        return verdict
    return "holds" if verdict else "does not hold here"


def _behind() -> dict[int, float]:
    """Nats by which linear attention is worse after the same updates, by context."""
    return {n: loss_curves.behind(*loss_curves.nano_pair(n)) for n in CONTEXTS}


def _behind_in_words() -> str:
    parts = (
        f"{signed(by)} after {loss_curves.common_updates(*loss_curves.nano_pair(n)):,} updates "
        f"of context {n:,}"
        for n, by in _behind().items()
    )
    return "nano, one run of each: loss " + ", ".join(parts)


def _slightly_worse() -> str | bool:
    losses = {}
    for n in CONTEXTS:
        softmax, linear = loss_curves.nano_pair(n)
        losses[n] = loss_curves.loss_after(softmax, loss_curves.common_updates(softmax, linear))
    verdict = slightly_worse(_behind(), losses, variants.seed_spread())
    first = [n for n in CONTEXTS if n >= PLATEAU_FROM and _softmax_left_first(n)]
    if not isinstance(verdict, str) or not first:
        return verdict
    return f"{verdict};{at(first)} softmax had left the plateau first"


def _softmax_left_first(context: int) -> bool:
    softmax, linear = map(loss_curves.leaves_pairs, loss_curves.nano_pair(context))
    return softmax is not None and (linear is None or softmax < linear)


def _ends(context: int) -> tuple[float, float]:
    softmax, linear = (loss_curves.last_loss(run) for run in loss_curves.nano_pair(context))
    return softmax, linear


def _ends_in_words() -> str:
    parts = []
    for n in CONTEXTS:
        softmax, linear = _ends(n)
        parts.append(f"{linear:.3f} against {softmax:.3f} at {n:,}")
    return "nano, nats after the same minutes, linear against softmax: " + ", ".join(parts)


def _better_in_the_same_time() -> str | bool:
    spread = variants.seed_spread()
    short, middle, long = (linear - softmax for softmax, linear in map(_ends, CONTEXTS))
    if short > spread and abs(middle) < spread and long < -10 * spread:
        return (
            "holds at 4,096 after an hour, where softmax had only just left letter pairs behind; "
            "level at 2,048 after half an hour, behind at 256 (one run of each)"
        )
    return long < -spread


def _layer_seconds(mode: str, length: int) -> float:
    return mode_speed.seconds(mode_speed.narrowest(), mode, length)


def _ratios() -> list[float]:
    return [loss_curves.update_ratio(n) for n in (1024, 4096, LONG)]


def _best_chunk() -> int:
    return best(mode_speed.narrowest(), LONG, "forward+backward")[0]


def _deep_rnn() -> tuple[dict[str, int], float, float]:
    """The largest shape, time-major over layer-major there, and the part of the order alone."""
    points = rnn_orders.measured(have("rnn_orders"))
    shape = rnn_orders.deepest(points)
    total, cache, _ = rnn_orders.ratios(points, **shape)
    return shape, total, cache


def _deep_rnn_in_words() -> str:
    shape, total, cache = _deep_rnn()
    return (
        f"{times(total)} with {shape['layers']} layers of width {shape['width']}, "
        f"{times(cache)} of it by the order alone"
    )


def _without_normaliser() -> float:
    """The least that leaving the normaliser out costs a positive map, in nats."""
    return variants.normaliser_costs(have("variants"))[0]


def _race_in_words() -> str:
    """How far the race's linear model ends behind, and how much another seed makes."""
    return (
        f"nano with a head that fades, {_seeds()}: loss {signed(race_words.behind(race.MAIN))} "
        f"after {race_words.updates(race.MAIN):,} updates of 4,096; noise "
        f"{race_words.noise(race.MAIN):.2f}"
    )


def _seeds() -> str:
    return seeds_in_words([len(race.ends(name, race.MAIN)) for name in race.PAIR])


def _race_slightly_worse() -> str | bool:
    by, least = race_words.behind(race.MAIN), race_words.noise(race.MAIN)
    if abs(by) <= least:
        return "level here: no difference beyond the noise"
    if by < 0:
        return "better here"
    return by <= SLIGHTLY * race.end("softmax", race.MAIN)


def _race_in_the_same_time() -> str:
    return (
        f"nano with a head that fades, {_seeds()}, 4,096 bytes: the same updates in "
        f"{race_words.minutes('linear', race.MAIN):.0f} minutes against "
        f"{race_words.minutes('softmax', race.MAIN):.0f}"
    )


def _flops_and_seconds() -> str:
    attention, recurrent = (mode_cost(mode, 1024, 64, 64) for mode in ("attention", "recurrent"))
    faster = _layer_seconds("recurrent", 1024) / _layer_seconds("attention", 1024)
    return (
        f"{times(attention.flops / recurrent.flops)} the operations, and {times(faster)} faster, "
        "forward and backward"
    )


Claim = tuple[str, str, Callable[[], str], str, Callable[[], bool | str]]
DRAFT, FRAMES = "draft of the article", "an architecture for neural language modelling"
RESULT, MODES = "[the result](index.md)", "[three modes](three-modes.md)"
TRAINING, SPACES = "[training](training.md)", "[state spaces](state-spaces.md)"
CLAIMS: list[Claim] = [
    (
        "Removing the exponential makes GPT-2 slightly worse per update",
        f"{DRAFT}, introduction",
        _behind_in_words,
        TRAINING,
        _slightly_worse,
    ),
    (
        "The same, where one head fades with distance",
        f"{DRAFT}, introduction",
        _race_in_words,
        RESULT,
        _race_slightly_worse,
    ),
    (
        "With a long context it is far better in the same time",
        f"{DRAFT}, introduction",
        _ends_in_words,
        TRAINING,
        _better_in_the_same_time,
    ),
    (
        "The same, where one head fades with distance",
        f"{DRAFT}, introduction",
        _race_in_the_same_time,
        RESULT,
        lambda: race_words.better_in_the_same_time(race.MAIN),
    ),
    (
        "20 times faster at a context of 4,096",
        f"{DRAFT}, introduction",
        lambda: (
            f"layer {times(mode_speed.ratio_to_softmax(4096))}, "
            f"update {times(loss_curves.update_ratio(4096))}"
        ),
        RESULT,
        lambda: loss_curves.update_ratio(4096) >= 20,
    ),
    (
        "Softmax learns more from an update because its state is larger",
        f"{DRAFT}, introduction",
        state_words.larger_in_words,
        TRAINING,
        state_words.larger_helps,
    ),
    (
        "All sizes behave alike, from 120M to 1.5B",
        f"{DRAFT}, introduction",
        scaling.sizes_in_words,
        TRAINING,
        scaling.sizes_alike,
    ),
    (
        "200 times faster at 100,000",
        f"{DRAFT}, introduction",
        lambda: (
            f"layer {times(mode_speed.ratio_to_softmax(65536))} at 65,536, "
            f"{times(mode_speed.ratio_to_softmax(131072))} at 131,072"
        ),
        RESULT,
        _two_hundred_times,
    ),
    (
        "The ratio grows with the context",
        f"{DRAFT}, introduction",
        lambda: f"update {', '.join(map(times, _ratios()))} at 1,024, 4,096, 16,384",
        RESULT,
        lambda: _ratios() == sorted(_ratios()),
    ),
    (
        "Recurrent mode overtakes attention mode at 64k, in a 1.5B model on a GPU",
        f"{DRAFT}, section 0.1",
        _nobody,
        MODES,
        _nobody,
    ),
    (
        "Chunks of 512 are best, in a 1.5B model",
        f"{DRAFT}, section 0.1",
        lambda: (
            f"of those tried {_best_chunk()}, at 16,384 tokens and one head of width "
            f"{mode_speed.narrowest()['config']['width']}"
        ),
        MODES,
        lambda: _best_chunk() == 512,
    ),
    (
        "Attention mode needs 250 times the operations of recurrent mode at 1,024 tokens and is "
        "faster all the same",
        f"{FRAMES}, section 2 on linear self-attention",
        _flops_and_seconds,
        MODES,
        lambda: (
            "faster, yes; the operations are fewer than that"
            if _layer_seconds("recurrent", 1024) > _layer_seconds("attention", 1024)
            else "not faster here"
        ),
    ),
    (
        "A deep RNN is faster layer by layer, because of cache hits",
        f"{FRAMES}, section 2",
        _deep_rnn_in_words,
        "[two orders](sequence-transformations.md)",
        lambda: _deep_rnn()[2] > 1.2,
    ),
    (
        "The normaliser may be left out of the formulas",
        f"{DRAFT}, section 0.1",
        lambda: (
            f"of the formulas yes; of a nano GPT-2 it costs at least {_without_normaliser():.3f} "
            "nats after the same updates"
        ),
        "[linear self-attention](linear-self-attention.md)",
        lambda: (
            "holds on paper only" if _without_normaliser() > variants.seed_spread() else "holds"
        ),
    ),
    (
        "A token costs the same at any position with a recurrent state",
        f"{DRAFT}, section 0.2",
        lambda: (
            f"124M: {duration(sampling_speed.seconds('linear', 1))} at 1, "
            f"{duration(sampling_speed.seconds('linear', LONG))} at 16,384"
        ),
        "[sampling](sampling.md)",
        lambda: sampling_speed.seconds("linear", LONG) < 1.2 * sampling_speed.seconds("linear", 1),
    ),
    (
        "Images are generated thousands of times faster, pixel by pixel",
        "Katharopoulos et al. (2020), abstract and section 4.2",
        _nobody,
        "[sampling](sampling.md)",
        _nobody,
    ),
    (
        "A fused selective scan is 40 times faster than a plain one",
        "Gu and Dao (2023), section 4.5; slides",
        _nobody,
        SPACES,
        _nobody,
    ),
    (
        "A state space model samples with 5 times the throughput",
        "Gu and Dao (2023), abstract and section 4.5; slides",
        _nobody,
        SPACES,
        _nobody,
    ),
]
