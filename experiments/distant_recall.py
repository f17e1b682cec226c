"""Recall over a distance: does a model find a pair far back, and does the text between matter?

A text opens with eight keys and their values; something else follows; then the keys are asked for.
Between them stands either noise, a kind of token that is never asked for, or pairs of other keys.
Only the questions tell these pairs from the first eight. Small models are trained with noise
between, at distances up to `LONGEST_TRAINED`. Then they are tested with either between, at
distances up to 16,384: a machine reads on and is asked for every key from the same state.

The models, the choice of the learning rate and the end of training are those of `synthetic_tasks`,
fixed before the runs. All states but the cache of softmax have the same size.

While all models are at chance, such a short probe chooses the largest rate. So these runs say too
little about what a layer can learn. `made_up_tasks` asks the same, with every rate trained in full.
"""

from __future__ import annotations

from .harness.core.plan import Experiment
from .harness.learning.probed import probed

TABLES = probed(
    between=("name", "what stands between: `noise`, or `pairs` of other keys"),
    distance=("tokens", "between the last pair and the questions"),
)

EXPERIMENT = Experiment(
    "distant_recall",
    "what can be found again far back, at rates that a short probe chose",
    TABLES,
    frozen="104c653f0d4c",
)
