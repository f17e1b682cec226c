"""Guarded verdicts on the claims of the drafts and papers."""

from experiments import made_up_tasks

from ..figures.index import mode_speed, race, sampling_speed
from ..figures.index.race_numbers import LINEAR_BEHIND, over_seeds
from ..figures.lib import tasks
from ..figures.lib.records import have, need, rows
from ..figures.linear_self_attention import variants
from ..figures.reproduce import claims
from ..figures.sequence_transformations import rnn_orders
from ..figures.trained_model import distances
from ..figures.trained_model.measured import measured
from ..figures.trained_model.remove_exponential import (
    FEW,
    SOME,
    confined,
    everywhere,
    first_alone,
    kept_recall,
)
from ..figures.training import long_race, loss_curves, scaling
from ..figures.training.state_size import Arm, behind
from . import every, is_above, is_below


def softmax_left_first(context: int) -> bool:
    """Whether softmax left the plateau before linear attention."""
    softmax, linear = map(loss_curves.leaves_pairs, loss_curves.nano_pair(context))
    return softmax is not None and (linear is None or softmax < linear)


def far_better(context: int) -> float:
    """Nats by which linear attention ends lower after the same minutes."""
    softmax, linear = claims.ends(context)
    return softmax - linear


VERDICTS = {
    "Every layer is trained in full at each of three learning rates, with three seeds": lambda: (
        every(
            len(runs) == 9
            for task in made_up_tasks.TASKS
            for runs in need(tasks.at_all_rates(task), tasks.EXPERIMENT).values()
        )
    ),
    "worse, and more than slightly: by up to": lambda: (
        min(map(claims.worse, claims.CONTEXTS)) > 0
        and max(map(claims.worse_share, claims.CONTEXTS)) > 0.05
    ),
    "at 4,096 softmax had left the plateau first": lambda: softmax_left_first(4096),
    "| not worse in the race; worse once softmax has begun to copy |": lambda: (
        over_seeds(LINEAR_BEHIND).mean < 0
        and every(is_below(long_race.last_lead(seed, whole=True)) for seed in long_race.SEEDS)
    ),
    "holds at 4,096 after an hour, where softmax had just left the plateau; lower by less than "
    "0.03 nats at 2,048; worse at 256": lambda: (
        far_better(4096) > 0.3 and 0 < far_better(2048) < 0.03 and far_better(256) < -0.05
    ),
    "| holds | nano at 4,096: {glue:text}`same_time` nats lower after": lambda: is_below(
        claims.same_time_gain()
    ),
    "faster by 20 times | not for an update; for the layer alone by more |": lambda: (
        race.ratio(4096) < 10
        and 20 < mode_speed.ratio_to_softmax(4096) < mode_speed.ratio_to_softmax(4096, "forward")
    ),
    "here a larger state came with other weights, and two of three end higher": lambda: (
        is_above(behind(Arm("Taylor 2"), Arm("elu + 1")))
        and is_above(behind(Arm("power 2"), Arm("elu + 1")))
        and behind(Arm("Taylor 4"), Arm("elu + 1")).mean < 0
    ),
    "not alike at these": lambda: (
        scaling.behind(scaling.LARGE).agreeing == scaling.behind(scaling.LARGE).count
        and any(0 < sum(gap < 0 for gap in found) < len(found) for found in scaling.smallest(2))
    ),
    "holds for the layer alone": lambda: mode_speed.ratio_to_softmax(65536) > 200,
    "The ratio grows with the context | holds |": lambda: (
        race.ratio(1024) < race.ratio(4096) < race.ratio(claims.LONG)
    ),
    "Chunks of 512 are best, in a 1.5B model | does not hold here |": lambda: (
        claims.best_chunk()
        == min(row["chunk_size"] for row in rows(mode_speed.narrowest(), "chunks"))
    ),
    "not here, where recurrent mode is a compiled program": lambda: (
        claims.attention_is_slower() > 1
    ),
    "because of cache hits | faster: holds": lambda: rnn_orders.largest()[1] > 1.2,
    "| holds for formulas, not for this network |": lambda: (
        variants.normaliser_costs(have("variants"))[0] > 0.1 and is_above(variants.outputs_cost())
    ),
    "holds for most of the recall 256 tokens back, with other heads farther back": lambda: (
        (FEW, SOME) == (8, 24)
        and kept_recall(confined(FEW)) < 0.2
        and 0.5 < kept_recall(first_alone(FEW)) < 0.95 < kept_recall(first_alone(16))
        and distances.way("but", SOME, distances.FAR) < 0.3
        and distances.way("first", SOME, distances.FAR) > 0.3
    ),
    "holds for the loss; recall goes in both cases": lambda: (
        measured(everywhere(), "cut").mean < 0.3
        and measured(everywhere("window-64-0"), "cut").mean > 1
        and max(measured(everywhere(case), "gain").mean for case in ("window-64-4", "window-64-0"))
        < 0
    ),
    "with a recurrent state | holds to within a tenth |": lambda: (
        sampling_speed.seconds("linear", claims.LONG) < 1.1 * sampling_speed.seconds("linear", 1)
    ),
}
