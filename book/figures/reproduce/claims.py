"""Measured numbers for the claims of the drafts and papers."""

from __future__ import annotations

from lsa.cost.modes import mode_cost

from ..index import mode_speed, race, race_numbers, sampling_speed, speedup
from ..lib.format import duration, in_words, percent, times
from ..lib.pairs import Pairs
from ..lib.records import have
from ..linear_self_attention import variants
from ..relatives import layer_speed
from ..sequence_transformations import rnn_orders
from ..three_modes.chunk_sizes import fastest
from ..trained_model import distances
from ..trained_model.measured import measured
from ..trained_model.remove_exponential import (
    FEW,
    SOME,
    confined,
    everywhere,
    first_alone,
    kept_recall,
)
from ..training import long_race_numbers, loss_curves, scaling, state_tables
from ..training.state_size import Arm, behind

CONTEXTS = (256, 2048, 4096)  # of the older runs, in which no head decays
LONG = 16384  # tokens


def worse(context: int) -> float:
    """Nats by which linear attention is behind after the same updates. Raises NotMeasuredError."""
    return loss_curves.behind(*loss_curves.nano_pair(context))


def worse_share(context: int) -> float:
    """The same as a share of softmax's loss. Raises NotMeasuredError."""
    softmax, linear = loss_curves.nano_pair(context)
    after = loss_curves.common_updates(softmax, linear)
    return worse(context) / loss_curves.loss_after(softmax, after)


def ends(context: int) -> tuple[float, float]:
    """Losses of softmax and linear attention after the same minutes. Raises NotMeasuredError."""
    softmax, linear = (loss_curves.last_loss(run) for run in loss_curves.nano_pair(context))
    return softmax, linear


def same_time_gain(other: str = "softmax") -> Pairs:
    """Linear attention's loss less another's when the race's linear attention is done."""
    return race.in_the_same_time(race.MAIN, other).behind


def best_chunk() -> int:
    """The fastest of the tried chunk sizes, with one head. Raises NotMeasuredError."""
    return fastest(mode_speed.narrowest(), LONG, "forward+backward")["chunk_size"]


def attention_is_slower() -> float:
    """Attention mode's time over recurrent mode's, for a layer. Raises NotMeasuredError."""
    seconds = (
        mode_speed.seconds(mode_speed.narrowest(), mode, 1024)
        for mode in ("attention", "recurrent")
    )
    return next(seconds) / next(seconds)


def numbers() -> dict[str, str]:
    """Measurements in the table of claims."""
    attention, recurrent = (mode_cost(mode, 1024, 64, 64) for mode in ("attention", "recurrent"))
    elu = Arm("elu + 1")
    functions = {f"worse_{n}": lambda n=n: f"{worse(n):.3f}" for n in CONTEXTS}
    for n in CONTEXTS:
        functions[f"ends_{n}"] = lambda n=n: "{1:.3f} against {0:.3f}".format(*ends(n))
    functions |= {f"update_{n}": lambda n=n: times(race.ratio(n)) for n in (1024, 4096, LONG)}
    larger = {"taylor": "Taylor 2", "power": "power 2", "taylor_4": "Taylor 4"}
    functions |= {
        f"larger_{name}": lambda weights=weights: behind(Arm(weights), elu).signed()
        for name, weights in larger.items()
    }
    return {
        **race_numbers.numbers(), **speedup.numbers(), **scaling.numbers(),
        **state_tables.numbers(), **long_race_numbers.numbers(), **rnn_orders.numbers(),
        **layer_speed.numbers(),
        **in_words(
            **functions,
            worse_share=lambda: percent(max(map(worse_share, CONTEXTS))),
            same_time=lambda: same_time_gain().spread(2),
            same_time_window=lambda: same_time_gain("window").spread(2),
            layer_forward_4096=lambda: times(mode_speed.ratio_to_softmax(4096, "forward")),
            layer_65536=lambda: times(mode_speed.ratio_to_softmax(65536)),
            chunk=best_chunk,
            flops_ratio=lambda: times(attention.flops / recurrent.flops),
            attention_slower=lambda: times(attention_is_slower()),
            normaliser=lambda: f"{variants.normaliser_costs(have('variants'))[0]:.3f}",
            outputs=lambda: variants.outputs_cost().spread(),
            behind_of=lambda: race_numbers.over_seeds(race_numbers.LINEAR_BEHIND).of(),
            tick_first=lambda: duration(sampling_speed.seconds("linear", 1)),
            tick_last=lambda: duration(sampling_speed.seconds("linear", LONG)),
            recall_far=lambda: percent(distances.way("but", SOME, distances.FAR)),
            recall_lost=lambda: percent(1 - kept_recall(confined(FEW))),
            recall_few=lambda: percent(kept_recall(first_alone(FEW))),
            recall_sixteen=lambda: percent(kept_recall(first_alone(16))),
            recall_kept=lambda: percent(kept_recall(first_alone(SOME))),
            sinkless=lambda: measured(everywhere("window-64-0"), "cut"),
            with_sinks=lambda: measured(everywhere(), "cut"),
        ),
    }  # fmt: skip
