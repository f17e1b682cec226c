"""A whole trained model whose heads see a window, with or without a state for what lies beyond.

SmolLM2-135M-Instruct teaches two copies of itself on the training novels. Both students, the arms
of a run, read the same tokens in the same order. In the arm `state` all heads see a window and the
first tokens, and keep a linear state for those between. The arm `window` is the control: the same
without the state. In some runs the first heads of a ranking keep softmax (`softmax_heads`). Heads
that look back may do the work of others, so the runs without them show the effect of a state.

First the features of the states are fitted to the teacher's q, k and v, in the same way in all
runs: from the same seed on the same texts. Then q, k, v and o of all layers, and the features,
learn through the whole model from the teacher's predictions. In half of the texts a passage of 64
tokens comes again. Loss and gain on passages of the test novels, as in `remove_exponential`, are
measured before and after every 51,200 tokens. At the end they are measured at other distances too,
and on lists of names and numbers. There is one seed and one learning rate for both arms, neither
tuned. The runs named `long` continue from the end of the others. `untrained` stops after the fit
of the features, and asks for passages without their copy too (`unseen`). `far` asks at
longer distances than the texts of its fit have. Its arm `state-unrotated` has states that read q
and k without rotary positions, so that no distance between tokens is new to them. `far-fitted`
fits to as many tokens of longer texts, in as many updates. The runs named `2048` train such states,
and the control, on longer texts than the first run.
"""

from __future__ import annotations

from typing import Any

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.learning import distilled_runs
from .harness.learning.distilled_runs import MARK, TABLES, UNSEEN, distill_through
from .harness.learning.distilling import Distillation
from .harness.learning.returning import trained
from .recipes import attention_of, first_heads

NEAR = {"window": 64, "first": 4}
ARMS: dict[str, dict[str, Any]] = {
    "state": {"kind": "window-state", "feature_map": "hedgehog", **NEAR},
    "window": {"kind": "window", **NEAR},
}
UNROTATED = {**ARMS["state"], "rotary": False}
FAR: dict[str, Any] = {
    "tokens": 0,
    "feature_tokens": 4 * distilled_runs.BASE["feature_tokens"],
    "texts": 8,
    "arms": {**ARMS, "state-unrotated": UNROTATED},
    "asked": [],
    "last": [
        [kind, distance, texts]
        for distance, texts in ((4096, 10), (256, 32), (1024, 16))
        for kind in ("passages", "unseen")
    ],
}
FAR_FITTED = {
    **FAR,
    "texts": 2,
    "length": 2048,
    "arms": {"state": ARMS["state"], "state-unrotated": UNROTATED},
}
LONGER: dict[str, Any] = {
    "length": 2048,
    "feature_tokens": FAR["feature_tokens"],
    "tokens": 6 * 12 * 2 * 2048,  # nearly as many as in the first run
    "measure_every": 12 * 2 * 2048,
    "last": [["lists", 256, 32], ["passages", 1024, 16], *FAR["last"][:2], UNSEEN],
}
SHORT, LONG, LONGEST = 6 * MARK, 24 * MARK, 54 * MARK
BASE: dict[str, Any] = {
    **distilled_runs.BASE,
    "arms": ARMS,
    "softmax_heads": 0,
    "tokens": SHORT,
    "last": [["lists", 256, 32], ["passages", 1024, 16], ["passages", 4096, 8]],
}
SMOKE = {
    **distilled_runs.SMOKE,
    "feature_tokens": 800,
    "tokens": 800,
    "asked": [["passages", 80, 2]],
    "last": [["lists", 80, 1]],
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """The plan, most informative first. On one CPU thread the first run takes some three hours."""
    if smoke:
        return [Run("linearise", "softmax-0", {**BASE, **SMOKE}, 0)]
    if kind != "cpu":  # the weights come in a package that a GPU machine may lack
        return []
    none, long = "softmax-0", "softmax-0-long"
    plan = [
        (none, {"keeps_end": True}),
        ("softmax-0-untrained", {"tokens": 0, "last": [UNSEEN]}),
        ("softmax-0-far", FAR),
        ("softmax-0-far-fitted", FAR_FITTED),
        ("softmax-8", {"softmax_heads": 8, "last": [*BASE["last"], UNSEEN]}),
        (long, {"tokens": LONG, "goes_on": none, "keeps_end": True}),
        ("softmax-16", {"softmax_heads": 16, "last": [*BASE["last"], UNSEEN]}),
        ("softmax-0-2048-state", {**LONGER, "arms": {"state-unrotated": UNROTATED}}),
        ("softmax-0-2048-window", {**LONGER, "arms": {"window": ARMS["window"]}}),
        ("softmax-0-longest", {"tokens": LONGEST, "goes_on": long}),
    ]
    return [
        Run("linearise", name, {**BASE, **config}, 700 + i) for i, (name, config) in enumerate(plan)
    ]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    heads = first_heads(config, config["softmax_heads"], session)
    teacher = trained(config["model"])
    arms = {name: attention_of(arm, heads) for name, arm in config["arms"].items()}
    layers = range(teacher.model.config.n_layer)
    splits = session.corpus(config["corpus"]).splits
    return distill_through(Distillation(config, arms, layers, teacher, splits), session)


EXPERIMENT = Experiment(
    "linearise", "a trained model taught to do without looking back, in all heads but a few",
    TABLES, runs, perform,
)  # fmt: skip
