"""Of the first page."""

from ..figures.index import loss_curves, mode_speed, race
from ..figures.index.race_numbers import far_head_costs, linear_behind
from ..figures.three_modes import block_speed, published

VERDICTS = {
    "linear model predicts unread novels about as well as the softmax model": lambda: (
        abs(linear_behind(4096).mean) < 0.02
    ),
    "nats lower over all four contexts": lambda: linear_behind().mean < 0,
    "Counted in {view}`updates <headline:x=update>` the two curves nearly coincide: linear "
    "attention ends": lambda: -0.02 < linear_behind(4096).mean < 0,
    "an update teaches both about the same": lambda: abs(linear_behind().mean) < 0.02,
    "One price grows with the square of the context, and the other does not": lambda: (
        race.ratio(256) < 1.1 < race.ratio(1024) < race.ratio(4096) < race.ratio(16384)
    ),
    "The far-sighted head costs": lambda: far_head_costs().mean > 0,
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
