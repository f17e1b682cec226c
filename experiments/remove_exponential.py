"""A trained model whose heads lose sight of the far past, head by head: what breaks?

Nothing in SmolLM2-135M-Instruct is changed but its attention. All layers, one layer, one head, or
the first heads of a ranking see only a window and the first tokens of the text. As `linear` they
see all of it without the exponential. `adjacent` counts the first tokens as next to the window.
Nothing is trained. A passage of 64 tokens comes again after
a distance, or a list of names and room numbers after a piece of a novel. As a control, in the texts
`unseen`, another passage stood first. In those named `late` the passage comes again after 256
tokens, as late in the text as others do after 4,096. `gain` is the fall of its loss the second
time; `loss` is that of all tokens that come once.

Rankings come from runs named `rank`, on eight texts of the validation novels. They are made at the
distance 256, and for passages at 4,096 too (`ranked` in a configuration; of two rankings a head of
each is taken in turn). One ranking takes the gradient of the gain with respect to each head's
confinement, over four mixtures of both kinds of attention. Two are controls: the attention mass
beyond the window, and random order. Runs with `ranked_by` take the heads that were ranked for the
other kind of text. The measured texts are from the test novels, which were not used for ranking. In
runs named `train` they are from the training novels, which nothing here was chosen on. The model
may have read these novels when it was trained. That would make a passage easier the first time as
well as the second.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from lsa.layers.mixes import SoftmaxMix, WindowMix
from lsa.llama import Attention, Llama

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.learning.returning import (
    LEAD,
    SCORES,
    Returning,
    Trained,
    passages,
    recall_in_text,
    scores,
    token_losses,
    trained,
    unseen,
)
from .recipes import in_turn, ranked_heads, ranking_name

NEAR = {"window": 64, "first": 4}
MIXTURES = (1 / 8, 3 / 8, 5 / 8, 7 / 8)
HERE, FAR, DISTANCES = 256, 4096, (64, 1024, 2048, 4096)
# In a late text the passage comes again after 256 tokens, at the position where others come again
# after 4,096.
TEXTS = {
    "passages": passages,
    "unseen": unseen,
    "late": partial(passages, lead=LEAD + FAR - HERE),
}
WINDOWS = (16, 32, 128, 256, 512)
FIRST = (1, 2, 4, 8, 12, 16, 24, 40, 80, 160)  # first heads of a ranking that are confined
BUT = (8, 12, 16, 24, 40)  # first heads of a ranking that are not, while all others are
LAYERS, HEADS, CHECKED = 30, 9, 40
BASE: dict[str, Any] = {
    "model": "SmolLM2-135M-Instruct",
    "corpus": "novels",
    "text": "passages",
    "split": "test",
    "distance": HERE,
    "texts": 32,
    "seed": 0,
    "where": "none",
    "attention": {},
}
SMOKE = {"model": "tiny", "distance": 80, "texts": 2}
HEAD = {"layer": ("number", "from 0"), "head": ("number", "from 0")}
TABLES = {
    "weights": table(sha256=("name", "of the model's file")),
    "texts": table(optional="in every run except those named `rank`", **SCORES),
    "confined": table(optional="in runs whose `where` is a head or a share of a ranking", **HEAD),
    "heads": table(
        optional="in the runs named `rank`",
        text=("number", "which text, from 0"),
        **HEAD,
        slope=("nats/token", "of the gain, by how far the head is confined, from 0 to 1"),
        mass=("share", "of its attention beyond the window when the passage comes again"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """The plan, most informative first; a run takes minutes on one CPU thread."""
    if smoke:
        few = [_basics()[1], *_sets("mass", first=(2,))]
        tried = [_rank_run("passages"), *_at("passages", HERE, few), *_at("lists", HERE, few[:1])]
        return [Run(run.experiment, run.name, {**run.config, **SMOKE}, 0) for run in tried]
    if kind != "cpu":  # the weights come in a package that a GPU machine may lack
        return []
    plan = [_rank_run(text) for text in ("passages", "lists")]
    for text in ("passages", "lists"):
        plan += _at(text, HERE, _basics() + _sets("gradient", first=FIRST, but=BUT))
    for order in ("mass", "random-0"):
        plan += _at("passages", HERE, _sets(order, first=FIRST, but=BUT))
        plan += _at("lists", HERE, _sets(order, first=(8,), but=(24,)))
    plan += _at("passages", HERE, _sets("random-1", first=(1, 2, 4, 8)))
    plan += _at("passages", HERE, _layers() + _heads() + _windows())
    ends = _basics()[:2]
    few = _sets("gradient", first=(8,), but=(8, 24))
    for distance, text in product((64, 1024, FAR), ("passages", "lists")):
        plan += _at(text, distance, [*ends, *few])
    plan += _at("passages", 2048, [*ends, *few[-1:]])
    plan += _at("unseen", HERE, [*ends, *_sets("gradient", first=(8, 16, 24), but=(8, 16, 24))])
    plan += [_rank_run("passages", FAR)]
    plan += _at("passages", FAR, _sets("gradient", first=(24,), but=(40,)))
    plan += _at("passages", FAR, _sets("gradient", FAR, but=(40, 80)))
    first = [*_sets("gradient", first=(1,)), *_sets("gradient", FAR, first=(1,))]
    far = [*first, *_sets("gradient", FAR, but=(24,)), *_sets("gradient", HERE, FAR, but=(40,))]
    for distance in (FAR, HERE, *DISTANCES[:-1]):
        plan += _at("passages", distance, far)
    last = _sets("gradient", FAR, but=(269,))  # the last head alone is confined
    plan += _at("passages", FAR, last) + _at("unseen", FAR, [*ends, *far, *last])
    plan += _at("late", HERE, [*ends[:1], *first])
    plan += _at("passages", HERE, [*ends, *few], split="train")
    plan += _at("passages", HERE, few, ranked_by="lists")
    plan += _at("lists", HERE, few, ranked_by="passages")
    for order in ("random-1", "random-2"):
        plan += _at("passages", HERE, _sets(order, first=(8,), but=(24,)))
    plan += _at("lists", HERE, _windows() + _layers())
    # Does the loss rise in longer texts because first tokens move away?
    adjacent = ("all", "window-64-4-adjacent", {"attention": _near(adjacent=True)})
    for distance in (FAR, 1024, HERE):
        plan += _at("passages", distance, [adjacent])
    # With 40 heads the loss is above that with 24: from which head on, and until which?
    plan += _at("passages", HERE, _sets("gradient", but=(28, 32, 36, 80, 160)))
    plan = [*{run.name: run for run in plan}.values()]
    return [Run(run.experiment, run.name, run.config, 500 + i) for i, run in enumerate(plan)]


Case = tuple[str, str, dict[str, Any]]


def _at(text: str, distance: int, cases: list[Case], **others: str) -> list[Run]:
    """Runs of one kind of text at one distance. others: its split, or what ranked the heads."""
    rest = {"text": text, "distance": distance, **others}
    return [_run(where, name, {**config, **rest}) for where, name, config in cases]


def _run(where: str, name: str, config: dict[str, Any]) -> Run:
    config = {**BASE, "where": where, **config}
    name = f"{config['text']}-{config['distance']}-{where}-{name}".removesuffix("-")
    if config["split"] == "train":
        name = f"train-{name}"
    if "ranked_by" in config:
        name = f"{name}-ranked-by-{config['ranked_by']}"
    return Run("remove_exponential", name, config, 0)


def _rank_run(text: str, distance: int = HERE) -> Run:
    which = {"text": text, "split": "validation", "texts": 8, "distance": distance}
    config = {**BASE, **which, "where": "rank", "attention": NEAR}
    return Run("remove_exponential", ranking_name(text, distance), config, 0)


def _basics() -> list[Case]:
    """Unchanged softmax; windows with and without the first tokens; linear attention."""
    window = [("all", f"window-64-{f}", {"attention": _near(first=f)}) for f in (4, 1, 0)]
    return [("none", "", {}), *window, ("all", "linear", {"attention": {"kind": "linear"}})]


def _windows() -> list[Case]:
    return [
        ("all", f"window-{w}-{f}", {"attention": _near(window=w, first=f)})
        for w in WINDOWS
        for f in (4, 0)
    ]


def _sets(
    order: str, *ranked: int, first: tuple[int, ...] = (), but: tuple[int, ...] = ()
) -> list[Case]:
    """Sets of heads: the first of a ranking, or all but these.

    ranked: distances of the rankings that are taken in turn; HERE by default.
    """
    at, config = "", {}
    if ranked:
        at = "-".join(["-at", *map(str, ranked)])
        config = {"ranked": ranked[0] if len(ranked) == 1 else [*ranked]}
    return [
        (where, f"{order}{at}-{n}", {"order": order, "number": n, "attention": _near(), **config})
        for where, numbers in (("first", first), ("but", but))
        for n in numbers
    ]


def _layers() -> list[Case]:
    return [("layer", str(n), {"number": n, "attention": _near()}) for n in range(LAYERS)]


def _heads() -> list[Case]:
    config = {"order": "gradient", "attention": _near()}
    return [("head", f"gradient-{n}", {**config, "number": n}) for n in range(CHECKED)]


def _near(**changes: int | bool) -> dict[str, Any]:
    return {"kind": "window", **NEAR, **changes}


class Between(nn.Module):
    """Attention of all heads between two ways: full + share (near - full), a share per head."""

    def __init__(self, full: SoftmaxMix, near: WindowMix, share: Tensor) -> None:
        super().__init__()
        self.full, self.near, self.share = full, near, share

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.full(q, k, v).lerp(self.near(q, k, v), self.share.unsqueeze(-1))


class Watched(nn.Module):
    """Full attention that records its mass beyond the window, from the scored places."""

    def __init__(self, full: SoftmaxMix, near: WindowMix, places: Tensor) -> None:
        super().__init__()
        self.full, self.near, self.places = full, near, places
        self.mass = torch.zeros(full.n_heads)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        i, j = self.places[:, None], torch.arange(k.shape[1])
        asked, keys = q[0, self.places].transpose(0, 1), self.full.spread(k)[0].transpose(0, 1)
        A = (asked @ keys.mT * q.shape[-1] ** -0.5).masked_fill(j > i, float("-inf")).softmax(-1)
        beyond = (i - j >= self.near.window) & (j >= self.near.first)
        self.mass = (A * beyond).sum(-1).mean(-1)
        return self.full(q, k, v)


def slopes(model: Llama, text: Returning, near: dict[str, int]) -> tuple[Tensor, Tensor]:
    """The gain's slope in a head's confinement, and its mass beyond the window: [layers, heads]."""
    layers, heads = len(model.blocks), model.config.n_head
    total, share = torch.zeros(layers, heads), torch.zeros(layers, heads, requires_grad=True)
    windows = _mixes(model, {"all": {"kind": "window", **near}})
    full = _mixes(model, {})
    watched = [Watched(*both, text.second - 1) for both in zip(full, windows, strict=True)]
    for block, mix in zip(model.blocks, watched, strict=True):
        block.self_attn.mixes[0] = mix
    with torch.no_grad():
        token_losses(model, text.tokens)
    for i, block in enumerate(model.blocks):
        block.self_attn.mixes[0] = Between(full[i], windows[i], share[i])
    for mixture in MIXTURES:
        with torch.no_grad():
            share.fill_(mixture)
        losses, _ = token_losses(model, text.tokens)
        gain = losses[text.first - 1].mean() - losses[text.second - 1].mean()
        total += torch.autograd.grad(gain, share)[0] / len(MIXTURES)
    model.attend({})
    return total, torch.stack([one.mass for one in watched])


def _mixes(model: Llama, attention: Attention) -> list[Any]:
    """The one mix of each layer, whose heads all attend alike."""
    model.attend(attention)
    return [block.self_attn.mixes[0] for block in model.blocks]


def confined(config: dict[str, Any], session: Session) -> tuple[Attention, list[tuple[int, int]]]:
    """Attention of the model's heads, and the ranked heads that are confined, if any."""
    kind, number = config["attention"], config.get("number", 0)
    if config["where"] == "none":
        return {}, []
    if config["where"] == "all":
        return {"all": kind}, []
    if config["where"] == "layer":
        return {str(number): kind}, []
    text = config.get("ranked_by") or ("lists" if config["text"] == "lists" else "passages")
    ranked = config.get("ranked", HERE)
    order = in_turn(
        ranked_heads(config["model"], text, config["order"], session.places, distance)
        for distance in (ranked if isinstance(ranked, list) else [ranked])
    )
    parts = {"head": slice(number, number + 1), "first": slice(number), "but": slice(number, None)}
    heads = order[parts[config["where"]]]
    return {f"{layer}.{head}": kind for layer, head in heads}, heads


def returning(config: dict[str, Any], session: Session) -> list[Returning]:
    """The texts of a run."""
    split = session.corpus(config["corpus"]).splits[config["split"]]
    tokens, asked = trained(config["model"]).tokens, {k: config[k] for k in ("distance", "texts")}
    if config["text"] != "lists":
        return TEXTS[config["text"]](split, tokens, **asked)
    seed = config["seed"] + (config["split"] == "validation")  # other lists rank than are measured
    return recall_in_text(split, tokens, **asked, seed=seed)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. It continues after the last measured text."""
    model = trained(config["model"])
    texts = returning(config, session)
    if config["where"] == "rank":
        return _ranking(model, config, texts, session)
    attention, heads = confined(config, session)
    tables = session.go_on()
    if not tables:
        append(tables, "weights", {"sha256": model.sha256})
        for layer, head in heads:
            append(tables, "confined", {"layer": layer, "head": head})
    model.model.attend(attention)
    done = _measured(tables, "texts")
    for i in session.through(range(len(texts)), tables, "text {}".format, done):
        append(tables, "texts", {"text": i, **scores(model.model, texts[i])})
    return Outcome(tables, session.whole)


def _measured(tables: Tables, name: str) -> set[int]:
    """The texts that an earlier attempt has measured."""
    return {*tables.get(name, {}).get("text", [])}


def _ranking(
    model: Trained, config: dict[str, Any], texts: list[Returning], session: Session
) -> Outcome:
    tables = session.go_on()
    if not tables:
        append(tables, "weights", {"sha256": model.sha256})
    done = _measured(tables, "heads")
    for i in session.through(range(len(texts)), tables, "text {}".format, done):
        slope, mass = slopes(model.model, texts[i], config["attention"])
        for layer, head in product(*map(range, slope.shape)):
            values = {"slope": slope[layer, head].item(), "mass": mass[layer, head].item()}
            rounded = {name: round(value, 8) for name, value in values.items()}
            append(tables, "heads", {"text": i, "layer": layer, "head": head, **rounded})
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "remove_exponential", "what a trained model loses when its heads may not look back",
    TABLES, runs, perform,
)  # fmt: skip
