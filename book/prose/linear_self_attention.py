"""Of the chapter on linear self-attention."""

from ..figures.index import ngram_baseline
from ..figures.lib.records import have
from ..figures.linear_self_attention.variants import (
    best_sum,
    final_loss,
    map_spread,
    normaliser_costs,
    ranking,
    seed_gap,
)
from ..figures.training.state_tables import gap

VERDICTS = {
    "The normaliser matters more than the map": lambda: (
        normaliser_costs(have("variants"))[0] > map_spread() + seed_gap()
    ),
    "and softmax is still {glue:text}`map_behind` ahead of it": lambda: (
        final_loss(ranking()[0]) - final_loss("softmax") > seed_gap()
    ),
    "The best is exp": lambda: ranking()[0] == "exp",
    "The last of the four, relu, does not fit": lambda: ranking()[-1] == "relu",
    "and it ends behind it": lambda: final_loss("taylor") > final_loss("linear"),
    "Over three pairs, with the same seed in each, the Taylor sum ends": lambda: (
        gap("nothing changed").mean > 0 and gap("nothing changed").of() == "3 of 3"
    ),
    "it is the best of the sums": lambda: best_sum() == "identity",
    "worse than counting pairs of letters": lambda: final_loss("identity") > ngram_baseline.loss(2),
}
