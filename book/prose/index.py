"""Of the first page."""

from ..figures.index import loss_curves, mode_speed, race
from ..figures.index.race_numbers import far_head_costs, linear_behind
from ..figures.lib import tasks
from ..figures.three_modes import block_speed, published
from ..figures.trained_model.measured import measured
from ..figures.trained_model.remove_exponential import SOME, everywhere, first_alone, lost_recall

VERDICTS = {
    "It learns about as much from an update.": lambda: (
        abs(linear_behind().mean) < 0.02 and abs(linear_behind(16384).mean) < 0.02
    ),
    "From an update both learn about as much. Linear attention ends": lambda: (
        -0.02 < linear_behind().mean < 0
    ),
    "In a trained model, recall hangs on a few heads": lambda: lost_recall(first_alone(SOME)) < 0.1,
    "If none may, the loss on novels rises by": (
        lambda: 0 < measured(everywhere(), "rise").mean < 0.3
    ),
    "recall is gone": lambda: measured(everywhere(), "gain").mean < 0,
    ", one seed).": tasks.is_one_rate_and_seed,
    "they part": lambda: race.ratio(16384) > 2,
    "One price grows with the square of the context, and the other does not": lambda: (
        race.ratio(256) < 1.1 < race.ratio(1024) < race.ratio(4096) < race.ratio(16384)
    ),
    "The far-sighted head costs": lambda: far_head_costs().mean > 0,
    "The gap depends on the context.": lambda: race.ratio(256) < 1.1 < race.ratio(16384),
    "The ratio is largest here": lambda: all(
        mode_speed.ratio_to_softmax(n) > other
        for n in (4096, 16384)
        for other in (
            block_speed.ratio_to_softmax("124M", n),
            loss_curves.update_ratio(n),
            published.update_ratio(n),
        )
    ),
    "The wider the model, the longer the context has to be before attention is most of the bill": (
        lambda: all(
            block_speed.ratio_to_softmax("124M", n) > block_speed.ratio_to_softmax("1.5B", n)
            for n in (4096, 16384)
        )
    ),
    "tokens, later than claimed": lambda: mode_speed.passes(20)[0] >= 4096,
    "tokens, where it was claimed": lambda: mode_speed.passes(200) == (65536, 131072),
}
