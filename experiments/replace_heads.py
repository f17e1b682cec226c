"""A state for the heads that matter for recall, when no other head looks back.

All heads of SmolLM2-135M-Instruct see a window and the first tokens. In one arm of a run the 8, 16
or 24 heads that matter most (`remove_exponential`) also keep a state for the tokens between. In the
arm `window` they do not, and are taught in the same way. The difference is the effect of the
states. Arms of a run read the same tokens in the same order, and so do runs of one seed.

First the features of the states are fitted to the teacher's q, k and v. Then q, k, v and o of the
layers of these heads learn through the whole model, from the teacher's predictions on the training
novels. In half of the texts a passage comes again. The arms differ in feature map, size of the
state and decay. `hedgehog-F` has F learned features, so 4 F (64 + 1) bytes of state a head.
`taylor-2` has 2,145 fixed ones and `power-2` 2,080. `fades-N` is hedgehog-128 with a decay that
halves the state in N tokens. `delta` is a delta rule with a state of 64 x 64 numbers a head, which
a learned gate mixes with the window; `delta-adds` is the same without its erasing. At the end
passages are measured at several distances, and lists of 1 to 64 names and numbers. In `unseen`
another passage stood first, so that the copy's own effect is known. The run `softmax` measures the
teacher. The run `fitted` fits its features to ten times as many tokens. The learning rate is not
tuned.
"""

from __future__ import annotations

from collections import Counter
from math import log
from typing import Any

from lsa.llama import Attention

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.learning import distilled_runs
from .harness.learning.distilled_runs import MARK, TABLES, UNSEEN, distill_through
from .harness.learning.distilling import Distillation
from .harness.learning.returning import trained
from .recipes import first_heads

NEAR = {"window": 64, "first": 4}
WINDOW = {"kind": "window", **NEAR}
MAIN = "hedgehog-128"
SIZES = (4, 16, 64, 512, 2048)
BASE: dict[str, Any] = {
    **distilled_runs.BASE,
    "arms": ["window", MAIN],
    "heads": 8,
    "tokens": 2 * MARK,
    "last": [
        *(["passages", distance, 16] for distance in (128, 1024)),
        *(["lists", 256, 16, pairs] for pairs in (1, 4, 16, 64)),
        *(["passages", distance, 4] for distance in (4096, 7936)),
    ],
}
SMOKE = {
    **distilled_runs.SMOKE,
    "order": "counted",
    "heads": 3,
    "arms": ["window", "hedgehog-4", "fades-64", "delta", "delta-adds"],
    "feature_tokens": 400,
    "tokens": 400,
    "asked": [["passages", 80, 1]],
    "last": [["lists", 80, 1, 2], ["unseen", 80, 2]],
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """The plan, most informative first; an arm takes some twenty minutes on one CPU thread."""
    if smoke:
        return [Run("replace_heads", "first-3", {**BASE, **SMOKE}, 0)]
    if kind != "cpu":  # the weights come in a package that a GPU machine may lack
        return []
    nothing = {"arms": ["softmax"], "heads": 0, "feature_tokens": 0, "tokens": 0}
    plan = [
        ("first-8", {}),
        ("softmax", nothing),
        ("first-24", {"heads": 24}),
        *((f"first-8-size-{size}", {"arms": [f"hedgehog-{size}"]}) for size in SIZES),
        ("first-8-taylor", {"arms": ["taylor-2"]}),
        ("first-8-fades", {"arms": ["fades-256", "fades-64"]}),
        ("first-8-delta", {"arms": ["delta"]}),
        ("first-8-delta-adds", {"arms": ["delta-adds"]}),
        ("first-8-fixed", {"arms": ["elu_plus_one-64", "power-2"]}),
        ("first-16", {"heads": 16}),
        ("first-24-delta", {"heads": 24, "arms": ["delta"], "last": [*BASE["last"], UNSEEN]}),
        ("first-8-fitted", {"arms": [MAIN], "feature_tokens": 10 * BASE["feature_tokens"]}),
        *((f"first-8-seed{seed}", {"seed": seed}) for seed in (1, 2)),
    ]
    return [
        Run("replace_heads", name, {**BASE, **config}, 650 + i)
        for i, (name, config) in enumerate(plan)
    ]


def kind_of(arm: str, heads: int) -> dict[str, Any]:
    """How the replaced heads of a layer attend in an arm. heads: their number."""
    name, _, number = arm.partition("-")
    if name in ("window", "softmax"):
        return WINDOW
    if name == "delta":
        return {"kind": "window-delta", **NEAR, "erase": number != "adds"}
    state = {"kind": "window-state", **NEAR}
    if name == "fades":
        fading = {"feature_map": "hedgehog", "features": 128}
        return {**state, **fading, "log_decay": [-log(2) / int(number)] * heads}
    option = {"hedgehog": "features", "taylor": "degree", "power": "degree"}.get(name)
    return {**state, "feature_map": name, **({option: int(number)} if option else {})}


def attention_of(arm: str, heads: list[tuple[int, int]]) -> Attention:
    """The heads of a list as in an arm, all others confined; in the arm `softmax` none is."""
    if arm == "softmax":
        return {}
    of_layer = Counter(layer for layer, _ in heads)
    replaced = {f"{n}.{head}": kind_of(arm, of_layer[n]) for n, head in heads}
    return {"all": WINDOW, **replaced}


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    teacher, heads = trained(config["model"]), first_heads(config, config["heads"], session)
    arms = {arm: attention_of(arm, heads) for arm in config["arms"]}
    layers = sorted({layer for layer, _ in heads} or range(teacher.model.config.n_layer))
    splits = session.corpus(config["corpus"]).splits
    return distill_through(Distillation(config, arms, layers, teacher, splits), session)


EXPERIMENT = Experiment(
    "replace_heads", "what a state brings where the heads that recall may not look back",
    TABLES, runs, perform,
)  # fmt: skip
