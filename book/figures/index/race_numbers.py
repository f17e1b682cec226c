"""Numbers of the race for the pages, and the paired runs that its sentences depend on."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import product
from math import log

from lsa.cost import update_flops
from lsa.gpt import GPT, gpt_config
from lsa.meta import on_meta

from ..lib.format import counted, in_words, times_between
from ..lib.pairs import Pairs, by_seed, compare, compare_seeds
from ..lib.records import NotMeasuredError, have, need
from ..linear_self_attention import variants
from . import ngram_baseline
from .race import CONTEXTS, MAIN, MODELS, PAIR, by_model, curves, differences, end, seconds, speed

LINEAR_BEHIND = ("linear", "softmax")
CONVOLUTION = "two bytes"


def linear_behind(*contexts: int) -> Pairs:
    """Nats by which linear attention ends behind softmax, a pair for each context and seed.

    Raises NotMeasuredError.
    """
    behind: list[float] = []
    for context in contexts or CONTEXTS:
        with suppress(NotMeasuredError):
            behind += differences("linear", "softmax", context)
    return compare(behind)


def over_seeds(*changes: tuple[str, str]) -> Pairs:
    """Last losses of the first models minus those of the second: a mean for each seed, compared.

    Runs of one seed share first weights and text for all contexts and attentions, so pairs of runs
    are not independent. Seeds are. Raises NotMeasuredError.
    """
    per_pair: list[dict[int, float]] = []
    for context, (first, second) in product(CONTEXTS, changes):
        runs = by_model(context)
        with suppress(NotMeasuredError):
            per_pair.append(by_seed(runs.get(first, ()), runs.get(second, ())))
    return compare_seeds(per_pair)


def near_lead(context: int | None = None) -> Pairs:
    """Nats by which linear attention ends above softmax with two decaying heads.

    At one context, or a mean over all. Raises NotMeasuredError.
    """
    models = "linear", "softmax, near only"
    return compare(differences(*models, context)) if context else over_seeds(models)


def far_costs() -> Pairs:
    """Nats by which runs with a far-sighted head end behind those with a second near one.

    Seeds are the units. Raises NotMeasuredError.
    """
    return over_seeds(*((name, f"{name}, near only") for name in PAIR))


def attentions() -> list[str]:
    """The models that attend."""
    return [name for name, (kind, _) in MODELS.items() if kind in PAIR]


def convolution_leads() -> list[float]:
    """Nats by which every attention ends above a convolution of two bytes: each context and seed.

    Raises NotMeasuredError.
    """
    leads: list[float] = []
    for context, name in product(CONTEXTS, attentions()):
        with suppress(NotMeasuredError):
            leads += differences(name, CONVOLUTION, context)
    return need(leads, "race: no convolution of two bytes")


def table_behind() -> Pairs:
    """Nats by which linear attention ends behind softmax with a table of positions, at 256 bytes.

    Raises NotMeasuredError.
    """
    runs = have("variants")
    linear, softmax = (
        [run for run in runs if variants.map_of(run) == name and variants.normalised(run) == "with"]
        for name in ("linear", "softmax")
    )
    return compare([*by_seed(linear, softmax).values()])


def minutes(model: str, context: int) -> float:
    """Minutes of all of a model's updates, from the seconds of one. Raises NotMeasuredError."""
    runs = need(by_model(context).get(model), f"race: no {model} at {context}")
    return runs[0]["config"]["updates"] * seconds(model, context) / 60


def _minutes(model: str, context: int) -> str:
    found = minutes(model, context)
    return f"{found:.0f}" if found >= 10 else f"{found:.1f}"


def _config(context: int) -> dict:
    runs = need(curves(context), f"race: nothing stored at {context}")
    return runs[0]["config"]


def _slope() -> float:
    runs = need(by_model(MAIN).get("linear"), f"race: no linear at {MAIN}")
    return runs[0]["config"]["attention_options"]["log_decay"][0]


def _parameters() -> int:
    config = _config(MAIN)
    with on_meta():  # a GPU's model may have 355 million
        return GPT(gpt_config(config["scale"], vocab_size=256, n_positions=None)).n_parameters


def counted_ratio(context: int, model: str = "softmax", other: str = "linear") -> float:
    """FLOPs of an update of a model over those of another. Raises NotMeasuredError."""
    shape = {"vocab_size": 256, "n_positions": None}
    more, less = (
        update_flops(gpt_config(_config(context)["scale"], attention=name, **shape), context)
        for name in (model, other)
    )
    return more / less


def numbers() -> dict[str, str]:
    """Numbers for the pages: the race."""
    makers = {
        "parameters": lambda: f"{_parameters() / 1e6:.2f} million",
        "counted_256": lambda: f"{counted_ratio(256):.2f}×",
        "counted_16384": lambda: f"{counted_ratio(16384):.0f}×",
        "half_life": lambda: f"{log(2) / -_slope():.1f}",
        "letter_pairs": lambda: f"{ngram_baseline.loss(2):.3f}",
        "triples": lambda: f"{ngram_baseline.loss(3):.3f}",
        "seeds_count": lambda: counted(over_seeds(LINEAR_BEHIND).count),
        "apart_16384": lambda: linear_behind(16384).spread(),
        "seeds_behind": lambda: over_seeds(LINEAR_BEHIND).spread(),
        "seeds_of": lambda: over_seeds(LINEAR_BEHIND).of(),
        "seeds_far_costs": lambda: far_costs().spread(),
        "near_lead_16384": lambda: near_lead(16384).spread(),
        "near_lead": lambda: near_lead().spread(),
        "two_bytes_lead": lambda: " to ".join(f"{f(convolution_leads()):.2f}" for f in (min, max)),
        "window_minutes_16384": lambda: _minutes("window", 16384),
        "window_behind": lambda: over_seeds(("window", "softmax")).spread(),
        "window_behind_linear": lambda: over_seeds(("window", "linear")).spread(),
        "table_behind": lambda: table_behind().spread(2),
        "updates_16384": lambda: f"{_config(16384)['updates']:,}",
        "none_4096": lambda: f"{end('no attention', MAIN):.3f}",
    }
    for n in (256, MAIN, 16384):
        makers[f"ratio_{n}"] = lambda n=n: times_between(speed("softmax", n), speed("linear", n))
    for name in PAIR:
        makers[f"{name}_{MAIN}"] = lambda name=name: f"{end(name, MAIN):.3f}"
        for n in (MAIN, 16384):
            makers[f"{name}_minutes_{n}"] = partial(_minutes, name, n)
    return in_words(**makers)
