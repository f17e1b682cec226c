"""Guarded sentences of the first page."""

from ..figures.index import mode_speed, race
from ..figures.index.price import recalled
from ..figures.index.race_numbers import (
    CONVOLUTION,
    LINEAR_BEHIND,
    convolution_leads,
    far_costs,
    linear_behind,
    minutes,
    near_lead,
    over_seeds,
    table_behind,
)
from ..figures.lib.records import device_name, have, load
from ..figures.relatives import parts
from ..figures.three_modes import block_speed, published
from ..figures.trained_model import distances
from ..figures.trained_model.measured import measured, recall
from ..figures.trained_model.remove_exponential import SOME, everywhere, first_alone, missing
from ..figures.training import loss_curves
from . import every, is_above, is_below, is_undecided, training

NEAR = "softmax, near only"


VERDICTS = {
    "Linear attention (elu + 1) does not, nor does softmax in a window of 128 bytes": lambda: (
        training.VERDICTS["it ends lower than linear attention. Linear attention does not copy"]()
        and training.VERDICTS["Softmax in a window of 128 bytes does not copy either"]()
    ),
    "asked for one of 64 values, softmax is right in": lambda: min(recalled("softmax")) > 0.95,
    "With silu features and an output norm <features-that-recall>`": lambda: (
        parts.share("silu-normed").low > max(recalled("linear")) + 0.2
    ),
    "linear attention in {glue:text}`recall_linear`, with a table": lambda: (
        max(recalled("linear")) < 0.6
    ),
    "Nothing here ran on a GPU.": lambda: every(
        run["provenance"]["device"]["kind"] == "cpu" for run in load()
    ),
    "in its place lowers the loss by {glue:text}`seeds_far_costs` nats": lambda: (
        is_above(far_costs()) and len(race.CONTEXTS) == 4
    ),
    "At 256 tokens the quartiles of both blocks include one": lambda: every(
        softmax["low"] < chunked["high"] and chunked["low"] < softmax["high"]
        for scale in ("124M", "1.5B")
        for softmax in [block_speed.point(scale, "softmax", 256)]
        for chunked in [block_speed.point(scale, "chunked", 256)]
    ),
    "nats below all attentions of the race, at every context": lambda: (
        min(convolution_leads()) > 0.03
        and every(len(race.ends(CONVOLUTION, n)) == 3 for n in race.CONTEXTS)
    ),
    "nats lower than softmax in the mean over four contexts": lambda: is_below(
        over_seeds(("window", "softmax"))
    ),
    "From linear attention we see no difference": lambda: is_undecided(
        over_seeds(("window", "linear"))
    ),
    "three seeds do not separate them": lambda: is_undecided(near_lead()),
    "With 24 of its {glue:text}`price_all` heads looking back it still does": lambda: (
        missing(first_alone(SOME)).mean < 0.1
    ),
    "so it finishes after linear attention": lambda: (
        minutes("linear", 16384) < minutes("window", 16384) < minutes("softmax", 16384) / 2
    ),
    "But softmax takes longer: press *Time*.": lambda: every(
        race.ratio(n) > 1 for n in race.CONTEXTS
    ),
    "On two CPU cores one head, with gradients, is": lambda: every(
        run["provenance"]["device"]["count"] == 2
        for run in (mode_speed.narrowest(), *have("block_speed"))
    ),
    "A block of GPT-2 (124M) trains": lambda: (
        1 < block_speed.ratio_to_softmax("124M", 4096) < block_speed.ratio_to_softmax("124M", 16384)
    ),
    "seeds each of": lambda: len(recalled("linear")) == len(recalled("softmax")),
    "Update for update we see no difference.": lambda: every(
        abs(linear_behind(n).mean) < 0.01 and is_undecided(linear_behind(n)) for n in race.CONTEXTS
    ),
    "We see no recall: a passage that returns is harder than the first time": (
        lambda: measured(everywhere(), "gain").mean < 0
    ),
    "and no easier than if another passage had come first": lambda: (
        abs(recall(everywhere()).mean) < 0.001
    ),
    "the loss of tokens whose past is cut rises by": lambda: (
        0 < measured(everywhere(), "cut").mean < 0.3
    ),
    "as with all ({glue:text}`price_all_gain`)": lambda: abs(missing(first_alone(SOME)).mean) < 0.1,
    "these {glue:text}`price_heads` restore": lambda: (
        distances.way("but", SOME, distances.FAR) < 0.3
        and distances.way("but", SOME, distances.FAR, distances.AT_FAR) > 0.5
    ),
    "The loss still rises by": lambda: measured(first_alone(SOME), "cut").mean > 0.02,
    "linear attention ends {glue:text}`seeds_behind` nats lower": lambda: (
        over_seeds(LINEAR_BEHIND).mean < 0
    ),
    "After the same updates we see no difference in loss.": lambda: is_undecided(
        over_seeds(LINEAR_BEHIND)
    ),
    "recipe softmax leads at 256 bytes by": lambda: (
        is_above(table_behind()) and table_behind().count == 3
    ),
    "The time of an update depends on the context.": lambda: (
        1 < race.ratio(256) < race.ratio(1024) < race.ratio(4096) < race.ratio(16384)
    ),
    "`models that see near bytes alone <race-controls>` end as low or lower": lambda: every(
        over_seeds((near, name)).mean < 0.01 for near in (NEAR, "window") for name in race.PAIR
    ),
    "All others were measured on one CPU.": lambda: (
        len({device_name(run) for run in (mode_speed.narrowest(), *have("block_speed"))}) == 1
        and every(
            device_name(race.timed(n)) == device_name(mode_speed.narrowest()) for n in race.CONTEXTS
        )
    ),
    "both stay near the loss of letter pairs for thousands of updates": lambda: every(
        (loss_curves.leaves_pairs(run) or 0) > 2000 for run in loss_curves.nano_pair(4096)
    ),
    "The ratio is largest here": lambda: all(
        mode_speed.ratio_to_softmax(n) > other
        for n in (4096, 16384)
        for other in (
            block_speed.ratio_to_softmax("124M", n),
            race.ratio(n),
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
