"""Number of pairs that a state can hold, and whether the length of the text matters.

Multi-query associative recall, as in `synthetic_tasks`, but pairs and window vary independently. A
text of 128 to 1,024 tokens opens with 4, 16 or 64 keys and their values, and each key comes again
among noise. One small model is trained on all these texts. Dense texts come first, of 8 pairs in 32
tokens and so on. In a trial without them (one rate, not stored) softmax had learned next to nothing
after 1,200 updates; the trial decided nothing else. A run ends if a model answers all dense texts
before the others join, as softmax may. All models have one head of 32. So the states that are sums
differ only in their feature maps: elu + 1 keeps 32 features of a key, Taylor 2 561 and Taylor 4
58,905.

The choice of the learning rate and the end of training are those of `synthetic_tasks`, fixed before
the runs.

While all models are at chance, such a short probe chooses the largest rate. So these runs say too
little about what a layer can learn. `made_up_tasks` asks the same, with every rate trained in full.
"""

from __future__ import annotations

from .harness.core.plan import Experiment
from .harness.learning.probed import probed

TABLES = probed(
    length=("tokens", "of a text"),
    pairs=("number", "keys in a text, each asked for once"),
)

EXPERIMENT = Experiment(
    "recall",
    "recall by pairs, length and state, at rates that a short probe chose",
    TABLES,
    frozen="104c653f0d4c",
)
