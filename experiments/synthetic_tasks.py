"""Recall by every layer, at learning rates that a short probe chose.

Recall (multi-query associative recall) asks for the value of one of 8 to 64 keys. Every model is
the same small GPT: a short convolution first, so that a token knows its neighbours, then the layer
in question. Texts with many pairs join when easier ones have been seen for a while (`join`). Layers
whose state has an adjustable size get about 1,000 numbers of it; some have more and fewer too.

A run chooses its learning rate: three rates train `probe_updates` each, and the one with the least
held-out loss goes on to `updates`. Training ends early once held-out texts are answered right to
the share `solved`. These rules are fixed before the runs and are in `config`.

While all models are at chance, such a short probe chooses the largest rate. So these runs say too
little about what a layer can learn. `made_up_tasks` asks the same, with every rate trained in full,
and the book uses its runs where it has any. Copying, selective copying and induction heads, which
were asked here too, are asked there alone.
"""

from __future__ import annotations

from .harness.core.plan import Experiment
from .harness.learning.probed import probed

TABLES = probed(
    length=("tokens", "of a text"),
    pairs=("number", "asked for in a text"),
)

EXPERIMENT = Experiment(
    "synthetic_tasks",
    "recall by every layer, at rates that a short probe chose",
    TABLES,
    frozen="104c653f0d4c",
)
