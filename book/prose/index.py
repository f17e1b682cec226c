"""Of the first page."""

from ..figures.index import loss_curves, mode_speed, race
from ..figures.index.price import recalled
from ..figures.index.race_numbers import (
    far_costs,
    linear_behind,
    minutes,
    over_seeds,
    table_behind,
    window_minutes,
)
from ..figures.three_modes import block_speed, published
from ..figures.trained_model.measured import measured
from ..figures.trained_model.remove_exponential import SOME, everywhere, first_alone, missing
from . import every

NEAR = "softmax, near only"

VERDICTS = {
    "of 64 values softmax finds": lambda: min(recalled("softmax")) > 0.95,
    "linear attention {glue:text}`recall_linear`.": lambda: max(recalled("linear")) < 0.6,
    "No model here gains from long context": lambda: every(
        race.end(f"{name}, near only", n) < race.end(name, n)
        for name in race.PAIR
        for n in race.CONTEXTS
    ),
    "softmax confined to near bytes ends {glue:text}`near_lead_16384` nats below": lambda: every(
        race.end(NEAR, 16384) < race.end(name, 16384) - 0.005 for name in race.PAIR
    ),
    "Softmax in a window of 128 bytes takes": lambda: (
        window_minutes(16384) < minutes("softmax", 16384) / 2
    ),
    "one of them takes several times as long": lambda: race.ratio(16384) > 3,
    "runs each of": lambda: len(recalled("linear")) == len(recalled("softmax")),
    "to the same loss": lambda: (
        abs(linear_behind(16384).mean) < 0.01
        and abs(linear_behind(16384).mean) < 2 * (linear_behind(16384).error or 0)
    ),
    "recall is gone. A passage that returns is then harder than the first time": (
        lambda: measured(everywhere(), "gain").mean < 0
    ),
    "the loss on novels rises by": lambda: 0 < measured(everywhere(), "rise").mean < 0.3,
    "as with all ({glue:text}`price_all_gain`)": lambda: abs(missing(first_alone(SOME)).mean) < 0.1,
    "The loss still rises by": lambda: measured(first_alone(SOME), "rise").mean > 0.02,
    "linear attention ends {glue:text}`seeds_behind` nats lower": lambda: (
        over_seeds(("linear", "softmax")).mean < 0
    ),
    "so the two are level.": lambda: (
        abs(over_seeds(("linear", "softmax")).mean)
        < 2 * (over_seeds(("linear", "softmax")).error or 0)
    ),
    "softmax leads by": lambda: table_behind() > 0.05,
    "The time of an update depends on the context.": lambda: (
        1 < race.ratio(256) < race.ratio(1024) < race.ratio(4096) < race.ratio(16384)
    ),
    "both models end lower, by": lambda: far_costs().mean > 2 * (far_costs().error or 1),
    "both stay at the loss of letter pairs for thousands of updates": lambda: every(
        (loss_curves.leaves_pairs(run) or 0) > 2000 for run in loss_curves.nano_pair(4096)
    ),
    "The ratio is largest here": lambda: all(
        mode_speed.ratio_to_softmax(n) > other
        for n in (4096, 16384)
        for other in (
            block_speed.ratio_to_softmax("124M", n),
            loss_curves.update_ratio(n),
            published.update_ratio(n),
        )
    ),
    "The wider the model, the longer the context has to be before attention is most of the time": (
        lambda: all(
            block_speed.ratio_to_softmax("124M", n) > block_speed.ratio_to_softmax("1.5B", n)
            for n in (4096, 16384)
        )
    ),
}
