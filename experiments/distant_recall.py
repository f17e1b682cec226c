"""Can something that was met once be found again, far back, and does it matter what stands between?

A text opens with eight keys and their values; something else follows; then the keys are asked
for. Between them stands either noise, tokens of their own kind that are never asked for, or pairs
of other keys, which only the question tells from the first eight. Small models are trained with
noise between, at distances up to `LONGEST_TRAINED`. Then they are asked with either between, at
distances up to 16,384: a machine reads on and is asked for every key from the same state.

The models, the way to choose a learning rate and the end of training are those of
`synthetic_tasks`, fixed before the runs. All states but the cache of softmax have the same size.

A probe so short chooses the largest rate while all models are at chance. So these runs say too
little of what a layer can learn. `made_up_tasks` asks the same, with every rate trained in full.
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
