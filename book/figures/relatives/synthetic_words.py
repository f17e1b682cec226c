"""What the chapters say of the made-up tasks: numbers, and what must hold for the words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ..lib.format import WrittenFor, in_words, percent
from ..lib.records import NotMeasuredError, Record, device_name, learned, rows
from ..lib.seeds import how_many_seeds
from . import random_codes
from .synthetic_tasks import (
    EXPERIMENT,
    TRAINED_AT,
    Score,
    between,
    by_layer,
    furthest,
    of_task,
    score,
)

SOME, MANY = 16, 64  # pairs that the words speak of
FEW_FEATURES = 8, 128, MANY, 500  # K, V, pairs, tokens: where the law errs on the other side
FIXED = ("s4", "s4d")  # the same for every text
UNLEARNED = ("s6", "mamba", "s4", "s4d")  # these hardly learn recall here, the words say


def numbers() -> dict[str, str]:
    """What the chapter on state spaces says of how the runs were made."""

    def first() -> Record:
        if not learned(EXPERIMENT):
            raise NotMeasuredError(EXPERIMENT)
        return learned(EXPERIMENT)[0]

    def models() -> str:
        config = first()["config"]
        head = "one head" if config["n_head"] == 1 else f"{config['n_head']} heads"
        return f"Width {config['d_model']}, {head}."

    told = {
        f"selective_{name}": lambda name=name: percent(solved("selective copying", name).mean)
        for name in ("s4", "s4d", "s6", "none", "gated", "linear")
    }
    told |= {
        f"found_{name}": lambda name=name: between(*reached(name))
        for name in ("linear", "s6", "mamba", "gated", "delta")
    }
    return in_words(
        **told,
        selective_mamba=lambda: _by_seed(solved("selective copying", "mamba")),
        copying_s4=lambda: percent(solved("copying", "s4").mean),
        copying_s4d=lambda: percent(solved("copying", "s4d").mean),
        task_seeds=lambda: _seeds([first(), *learned(EXPERIMENT)]),
        task_models=models,
        task_device=lambda: " and ".join(
            {device_name(run): 0 for run in [first(), *learned(EXPERIMENT)]}
        ),
        task_solved=lambda: f"{100 * first()['config']['solved']:g}%",
        task_updates=lambda: f"{first()['config']['updates']:,}",
    )


def _by_seed(found: Score) -> str:
    """11%, or 11% to 29% where seeds differ."""
    ends = dict.fromkeys((percent(found.low), percent(found.high)))
    return " to ".join(ends)


def _seeds(records: Iterable[Record]) -> str:
    """One seed, three seeds, or up to three where some of the runs have fewer."""
    found: dict[str, set[int]] = defaultdict(set)
    for run in records:
        seed = run["config"]["seed"]
        found[run["name"].removesuffix(f"-seed{seed}")].add(seed)
    counts = {len(seeds) for seeds in found.values()}
    return f"{'up to ' if len(counts) > 1 else ''}{how_many_seeds(max(counts))}"


def solved(task: str, layer: str) -> Score:
    """A layer's share at a task of one length. Raises NotMeasuredError."""
    return score(by_layer(task).get(layer, []))


def reached(layer: str) -> tuple[int, int]:
    """The longest text in which a seed of it finds what followed, at worst and at best.

    Raises NotMeasuredError.
    """
    if not (runs := by_layer("induction").get(layer)):
        raise NotMeasuredError(f"{EXPERIMENT}: no induction by {layer}")
    return furthest(runs)


def task_claims() -> WrittenFor:
    """What the words say of the tasks, beyond the numbers in them."""

    return WrittenFor(
        fixed_delays_copy=lambda: min(solved("copying", name).low for name in FIXED) > 0.95,
        S6_copies_selectively_and_the_fixed_ones_do_not=lambda: (
            solved("selective copying", "s6").low > 0.8
            and max(solved("selective copying", name).high for name in FIXED) < 0.4
        ),
        a_gate_selects_no_better_than_no_attention=lambda: (
            solved("selective copying", "gated").mean <= solved("selective copying", "none").high
        ),
        linear_attention_passes_the_gate_and_the_Mamba_block=lambda: (
            solved("selective copying", "linear").low
            > max(solved("selective copying", name).high for name in ("gated", "mamba"))
        ),
        the_Mamba_block_is_far_behind_S6=lambda: (
            solved("selective copying", "mamba").high < 0.5 * solved("selective copying", "s6").low
        ),
        S6_and_a_gate_do_not_find_far_beyond_what_they_were_trained_at=lambda: (
            max(reached(name)[1] for name in ("s6", "gated")) <= 4 * TRAINED_AT
        ),
        the_best_seed_of_what_never_fades_finds_much_further=lambda: (
            reached("linear")[1] > 16 * max(reached(name)[1] for name in ("s6", "gated"))
        ),
        how_far_linear_attention_and_the_Mamba_block_find_depends_on_the_seed=lambda: all(
            reached(name)[1] > 4 * reached(name)[0] for name in ("linear", "mamba")
        ),
    )


def recalled(layer: str, pairs: int) -> Score:
    """A layer's share at its usual size. Raises NotMeasuredError."""
    return score(by_layer("recall").get(layer, []), pairs=pairs)


def recall_numbers() -> dict[str, str]:
    """How much of the recall experiment is stored, and what the chapters say of it."""

    def found() -> list[Record]:
        if not (records := of_task("recall")):
            raise NotMeasuredError(EXPERIMENT)
        return records

    def few(names: Iterable[str]) -> str:
        """The largest share among layers that hardly learn the task."""
        return percent(max(recalled(name, MANY).mean for name in names))

    shares = {
        f"recall_{name}_{pairs}": lambda name=name, pairs=pairs: percent(recalled(name, pairs).mean)
        for name in ("softmax", "delta", "linear", "gated")
        for pairs in (SOME, MANY)
    }
    return in_words(
        recall_runs=lambda: len(found()),
        recall_seeds=lambda: _seeds(found()),
        recall_state=lambda: f"{recalled('linear', MANY).state:,}",
        recall_cache=lambda: f"{recalled('softmax', MANY).state:,}",
        recall_few=lambda: few(UNLEARNED),
        recall_law=lambda: percent(random_codes.right_by_the_law(*_sizes_of("linear"))),
        recall_drawn=lambda: percent(random_codes.right_when_drawn(*_sizes_of("linear"))),
        law_of_few=lambda: percent(random_codes.right_by_the_law(*FEW_FEATURES)),
        drawn_of_few=lambda: percent(random_codes.right_when_drawn(*FEW_FEATURES)),
        recall_range_delta=lambda: _by_seed(recalled("delta", MANY)),
        recall_range_linear=lambda: _by_seed(recalled("linear", MANY)),
        **shares,
    )


def _sizes_of(layer: str) -> tuple[int, int, int, int]:
    """K, V, pairs and tokens to choose from, of a layer with one head asked for most pairs."""
    if not (runs := by_layer("recall").get(layer)):
        raise NotMeasuredError(f"{EXPERIMENT}: no recall by {layer}")
    config = runs[0]["config"]
    return config["d_model"], config["d_model"], MANY, config["vocab"] // 2


def recall_claims() -> WrittenFor:
    """What the words say of recall, beyond the numbers in them."""

    def ahead(better: str, worse: str) -> bool:
        return recalled(better, MANY).low > recalled(worse, MANY).high

    def sizes(layer: str) -> list[float]:
        runs = [run for run in of_task("recall") if run["config"]["attention"] == layer]
        by_state = sorted((row["state"], row["accuracy"]) for run in runs
                          for row in rows(run, "test", pairs=MANY))  # fmt: skip
        return [share for _, share in by_state]

    return WrittenFor(
        softmax_answers_nearly_all=lambda: recalled("softmax", MANY).low > 0.95,
        the_delta_rule_answers_more_in_the_mean_and_not_by_every_seed=lambda: (
            recalled("delta", MANY).mean > recalled("linear", MANY).mean
            and not ahead("delta", "linear")
        ),
        the_law_is_some_hundredths_off=lambda: all(
            0.03
            < abs(random_codes.right_by_the_law(*sizes) - random_codes.right_when_drawn(*sizes))
            < 0.2
            for sizes in (_sizes_of("linear"), FEW_FEATURES)
        ),
        the_sum_answers_fewer_than_random_codes_would=lambda: (
            recalled("linear", MANY).high
            < 0.9 * random_codes.right_when_drawn(*_sizes_of("linear"))
        ),
        a_gate_is_no_help=lambda: recalled("gated", MANY).mean <= recalled("linear", MANY).high,
        a_larger_state_of_the_sum_recalls_more=lambda: sizes("linear")[-1] > sizes("linear")[0],
        the_others_hardly_learn_it=lambda: all(
            recalled(name, MANY).high < 0.1 for name in UNLEARNED
        ),
    )
