"""Guarded sentences of the chapter on linear self-attention."""

from ..figures.index import ngram_baseline
from ..figures.lib.records import have
from ..figures.linear_self_attention import taylor_error
from ..figures.linear_self_attention.variants import (
    POSITIVE,
    final_loss,
    map_spread,
    normaliser_costs,
    outputs_cost,
    ranking,
    relu_behind,
    seed_gap,
)
from ..figures.relatives import parts
from ..figures.training.state_tables import gap
from . import every, is_undecided


def falls(parity: int, scale: float) -> bool:
    """Whether the error falls with every two more terms."""
    points = [row for row in taylor_error.measured(64) if row["scale"] == scale]
    errors = {row["degree"]: row["rms"] for row in points if row["degree"] % 2 == parity}
    order = [errors[n] for n in sorted(errors)]
    return bool(order) and order == sorted(order, reverse=True)


def odd(name: str, above: float) -> bool:
    """Whether a column is above a bound for every odd n, at deviations 2 and 4."""
    return every(
        row[name] > above
        for row in taylor_error.measured(64)
        if row["scale"] in (2, 4) and row["degree"] % 2
    )


VERDICTS = {
    "dropping the normaliser costs more than changing among four maps": lambda: (
        normaliser_costs(have("variants"))[0] > map_spread() + seed_gap()
    ),
    "and softmax is still {glue:text}`map_behind` ahead of it": lambda: (
        final_loss(ranking()[0]) - final_loss("softmax") > seed_gap()
    ),
    "The map exp ends lowest of the four, by less than seeds differ": lambda: (
        ranking()[0] == "exp" and 0 < final_loss(ranking()[1]) - final_loss("exp") < seed_gap()
    ),
    "relu picks better than elu + 1 and ends": lambda: relu_behind() > 0,
    "behind it. That is about the spread of seeds": lambda: relu_behind() < 2 * seed_gap(),
    "At this learning rate it ends behind elu + 1, in three reruns by": lambda: (
        final_loss("taylor") > final_loss("linear") and gap("Taylor 2").of() == "3 of 3"
    ),
    "at twice the rate the sign is open": lambda: is_undecided(gap("Taylor 2", "twice the rate")),
    "With the normaliser identity ends at {glue:text}`identity_with`, above": lambda: (
        normaliser_costs(have("variants"))[0] > 0
        and final_loss("identity") > final_loss("identity", "without")
    ),
    "with one head and an output norm silu {ref}`recalls far more": lambda: (
        parts.share("silu-normed").low > parts.share("linear-normed").high + 0.2
    ),
    "higher than with the denominator": lambda: (
        normaliser_costs(have("variants"), "outputs")[0] > 0
    ),
    "and lower than with neither": lambda: every(
        final_loss(name, "outputs") < final_loss(name, "without") for name in POSITIVE
    ),
    "(3 of 3 seeds;": lambda: outputs_cost().mean > 0 and outputs_cost().of() == "3 of 3",
    "ends near its plain sum, far below its loss with the denominator": lambda: (
        abs(final_loss("identity", "outputs") - final_loss("identity", "without"))
        < seed_gap()
        < 0.1 * (final_loss("identity") - final_loss("identity", "outputs"))
    ),
    "above the loss of letter pairs": lambda: final_loss("identity") > ngram_baseline.loss(2),
    "none of the four plain sums is below": lambda: every(
        final_loss(name) < ngram_baseline.loss(2) < final_loss(name, "without") for name in POSITIVE
    ),
    "each pair of terms brings the error down": lambda: falls(0, 1) and falls(0, 2),
    "the odd lines fall with them": lambda: falls(1, 1),
    "the odd lines stay above 100%": lambda: odd("rms", 1),
    "many of their weights are negative": lambda: odd("negative", 0.05),
    "it is far from softmax at every $n$ drawn here": lambda: every(
        row["rms"] > 0.1
        for row in taylor_error.measured(64)
        if row["scale"] == 4 and row["degree"] % 2 == 0
    ),
}
