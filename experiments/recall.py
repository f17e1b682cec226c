"""How many pairs a state can hold, and whether it matters how long the text is.

Multi-query associative recall, as in `synthetic_tasks`, with pairs and window told apart: 4, 16
or 64 keys and their values open a text of 128 to 1,024 tokens, and each key comes again among
noise. One small model is trained on these texts and asked for each. Dense ones come first, of 8
pairs in 32 tokens and so on: without them softmax had hardly begun to learn after 1,200 updates
of a trial (one rate, not stored), and nothing else was decided by one. What answers all of them
before the others join, as softmax may, is done. All have one head of 32, so the states of those
that add up differ by their feature maps alone: elu + 1 keeps 32 features of a key, Taylor 2 561
and Taylor 4 58,905.

The way to choose a learning rate and the end of training are those of `synthetic_tasks`, fixed
before the runs.

A probe so short chooses the largest rate while all models are at chance, so these say too little of
what a layer can learn. `made_up_tasks` asks the same, with every rate trained in full.
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
