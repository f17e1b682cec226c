"""Can something that was met once be found again, far back? What stands between decides.

A text opens with eight keys and their values; something else follows; then the keys are asked
for. Either noise stands between, tokens that are never asked for and can be told by what they
are, or pairs of other keys, which only the question tells from those that matter. Small models
are trained with noise between, at distances up to `LONGEST_TRAINED`, and then asked with either,
at up to 16,384: their machine reads on and is asked for every key from the same state.

The models, the way to choose a learning rate and the end of training are those of
`synthetic_tasks`, fixed before the runs. All states but the cache of softmax have the same size.

A probe so short chooses the largest rate while all models are at chance, so these say too little of
what a layer can learn. `made_up_tasks` asks the same, with every rate trained in full.
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
