"""Attention of the heads that recall, with other weights for far tokens and without training.

In SmolLM2-135M-Instruct the first heads of a ranking (`remove_exponential`) alone look back. All
others see a window and the first tokens; a far token stands beyond both. In the heads that look
back its weight is not exp(s) of its score s. Queries, keys and values stay the model's, so no
result depends on how features are trained.

- `softened`: exp(s / T), or equal weights (`even`). The sum over far tokens stays that of exp(s).
- `taylor`: the Taylor polynomial of exp(s) of an even degree, as a state of all monomials up to
  that degree computes it. Runs named `passage` change the returning passage alone and keep the sum.
- `random`: positive random features (Choromanski et al., 2021, lemma 1), an unbiased estimate of
  exp(s). All heads share one draw. For the passage alone, as above.
- `rank` and `polynomial`: for the returning passage, the least-squares approximation of its weights
  on what is far from all of it: by a matrix of that rank, or by a polynomial of s of that degree
  for each query. A state of F features gives weights of rank F at most; a state of all monomials up
  to a degree gives every such polynomial, and other weights too. The fit knows the text, and all
  other weights stay. It is the best by the squared error, not by the gain.

Texts and measures are those of `remove_exponential`: a passage comes again after 256 tokens.
"""

from __future__ import annotations

from math import comb, inf
from typing import Any

import torch
from torch import Tensor

from lsa.layers.mixes import GroupedHeads, SoftmaxMix
from lsa.layers.taylor import taylor_exp
from lsa.llama import Llama

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append, table
from .harness.learning.returning import SCORES, passages, scores, trained, unseen
from .recipes import attention_of, first_heads

WINDOW, FIRST = 64, 4
NEAR = {"kind": "window", "window": WINDOW, "first": FIRST}
TEXTS = {"passages": passages, "unseen": unseen}
DEGREES = (2, 4, 8, 16, 32, 64)
RANKS = (4, 8, 16, 32, 48)
TEMPERATURES = (1.25, 1.5, 2.0, 3.0)
FEATURES = (256, 4096)
# Asked with another passage first too, as a control.
CONTROLLED = ("rank-16", "polynomial-4", "taylor-8-passage", "softened-2")
BASE: dict[str, Any] = {
    "model": "SmolLM2-135M-Instruct",
    "corpus": "novels",
    "text": "passages",
    "distance": 256,
    "texts": 32,
    "order": "gradient",
    "heads": 24,
    "seed": 0,
}
SMOKE = {"model": "tiny", "distance": 80, "texts": 2, "order": "counted", "heads": 3}
TABLES = {
    "weights": table(sha256=("name", "of the model's file")),
    "features": table(
        optional="in runs whose `way` is not `softened`",
        numbers=("number", "of features of a state that can give these weights, for one head"),
    ),
    "texts": table(optional="", **SCORES),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """The plan, most informative first; a run takes minutes on one CPU thread."""
    ways: list[tuple[str, str, float, bool]] = [
        *(("taylor", f"{degree}", degree, False) for degree in DEGREES),
        *(("rank", f"{rank}", rank, False) for rank in RANKS),
        *(("softened", f"{much:g}", much, True) for much in TEMPERATURES),
        ("softened", "even", inf, True),
        *(("polynomial", f"{degree}", degree, True) for degree in DEGREES[:4]),
        *(("random", f"{features}-passage", features, True) for features in FEATURES),
        *(("taylor", f"{degree}-passage", degree, True) for degree in DEGREES),
    ]
    plan = [(f"{way}-{name}", way, number, total) for way, name, number, total in ways]
    if smoke:
        few = {"taylor-2", "softened-even", "random-256-passage", "rank-4", "polynomial-2"}
        return [_run(*one, **SMOKE) for one in plan if one[0] in few]
    if kind != "cpu":  # the weights come in a package that a GPU machine may lack
        return []
    found = [_run(*one) for one in plan]
    found += [_run(*one, text="unseen") for one in plan if one[0] in CONTROLLED]
    return [Run(one.experiment, one.name, one.config, 600 + i) for i, one in enumerate(found)]


def _run(name: str, way: str, number: float, total: bool, **changes: Any) -> Run:
    much = "even" if number == inf else number  # JSON has no infinity
    config = {**BASE, **changes, "way": way, "number": much, "keeps_total": total}
    if name.endswith("passage"):
        config["passage_alone"] = True
    name = name if config["text"] == "passages" else f"{config['text']}-{name}"
    return Run("far_weights", name, config, 0)


class FarWeights(GroupedHeads):
    """Softmax attention with other weights for far tokens. q, k, v as for a `Mix`.

    places: positions of the queries whose weights change, without a gap; used only by the ways and
        runs that change the passage alone.
    """

    def __init__(self, mix: SoftmaxMix, config: dict[str, Any]) -> None:
        super().__init__(mix.n_heads, None if mix.groups is None else mix.groups.tolist())
        self.way, self.number = config["way"], config["number"]
        self.keeps_total, self.seed = config["keeps_total"], config["seed"]
        self.passage_alone = config.get("passage_alone", False)
        self.places: Tensor | None = None

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (q, self.spread(k), self.spread(v)))
        # Where s is negative, the terms of the Taylor sum cancel.
        s = (q @ k.mT * q.shape[-1] ** -0.5).double()
        i = torch.arange(s.shape[-1]).unsqueeze(-1)
        far = (i - i.mT >= WINDOW) & (i.mT >= FIRST)
        near = (i >= i.mT) & ~far
        if self.way in ("rank", "polynomial"):
            A = self._approximated(s, s.masked_fill(i < i.mT, -inf).softmax(-1))
            return (A.to(v.dtype) @ v).transpose(1, 2)
        logs = self._logs(s, q, k)
        if self.passage_alone:
            assert self.places is not None
            logs = logs.where(torch.isin(i, self.places), s)
        logs = logs.masked_fill(~far, -inf)
        whole = s.masked_fill(~far, -inf) if self.keeps_total else logs
        logs = logs - logs.logsumexp(-1, keepdim=True) + whole.logsumexp(-1, keepdim=True)
        logs = logs.where(far, -inf)  # rows without a far token: -inf - -inf
        logs = s.masked_fill(~near, -inf).logaddexp(logs)
        return (logs.softmax(-1).to(v.dtype) @ v).transpose(1, 2)

    def _logs(self, s: Tensor, q: Tensor, k: Tensor) -> Tensor:
        """Logarithms of the weights [B, H, T, T], up to a number for each row."""
        if self.way == "softened":
            return torch.zeros_like(s) if self.number == "even" else s / self.number
        if self.way == "taylor":
            return taylor_exp(s, self.number).clamp(min=torch.finfo(s.dtype).tiny).log()
        return torch.stack([self._estimate(*head) for head in zip(q[0], k[0], strict=True)])[None]

    def _estimate(self, q: Tensor, k: Tensor) -> Tensor:
        """log of phi(q)·phi(k) [T, T], phi(x) = exp(W x - |x|^2 / 2) / sqrt(F); q, k [T, K]."""
        drawn = torch.Generator().manual_seed(self.seed)
        q, k = (x.double() * x.shape[-1] ** -0.25 for x in (q, k))
        parts = []
        for start in range(0, self.number, 256):  # F features at once would take gigabytes
            rows = min(256, self.number - start)
            W = torch.randn(rows, q.shape[-1], generator=drawn).double()
            a, b = (x @ W.mT - x.square().sum(-1, keepdim=True) / 2 for x in (q, k))
            tops = a.amax(-1, keepdim=True), b.amax(-1, keepdim=True)
            product = (a - tops[0]).exp() @ (b - tops[1]).exp().mT
            parts.append(product.log() + tops[0] + tops[1].mT)
        return torch.stack(parts).logsumexp(0) - torch.tensor(self.number).log()

    def _approximated(self, s: Tensor, A: Tensor) -> Tensor:
        """A [B, H, T, T] with its block of the places and what is far from all of them changed."""
        assert self.places is not None
        rows = slice(int(self.places[0]), int(self.places[-1]) + 1)
        columns = slice(FIRST, max(rows.start - WINDOW + 1, FIRST))
        s, block, r = s[..., rows, columns], A[..., rows, columns], self.number
        A = A.clone()
        if self.way == "rank":
            U, values, V = torch.linalg.svd(block, full_matrices=False)
            A[..., rows, columns] = U[..., :r] * values[..., None, :r] @ V[..., :r, :]
        else:
            low, high = s.aminmax(dim=-1, keepdim=True)
            t = 2 * (s - low) / (high - low) - 1
            basis = torch.stack([torch.cos(m * t.acos()) for m in range(r + 1)], -1)  # Chebyshev's
            basis = torch.linalg.qr(basis).Q
            A[..., rows, columns] = (basis @ (basis.mT @ block.unsqueeze(-1))).squeeze(-1)
        return A


def replaced(
    model: Llama, config: dict[str, Any], heads: list[tuple[int, int]]
) -> list[FarWeights]:
    """Confine all heads of a model but these, and change the weights of these; the new parts."""
    model.attend(attention_of(NEAR, heads))
    changed = []
    for block in model.blocks:
        mixes: Any = block.self_attn.mixes
        for n, mix in enumerate(mixes):
            if isinstance(mix, SoftmaxMix):
                mixes[n] = FarWeights(mix, config)
                changed.append(mixes[n])
    return changed


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. It continues after the last measured text."""
    model, asked = trained(config["model"]), {k: config[k] for k in ("distance", "texts")}
    heads = first_heads(config, config["heads"], session)
    split = session.corpus(config["corpus"]).splits["test"]
    texts = TEXTS[config["text"]](split, model.tokens, **asked)
    tables = session.go_on()
    if not tables:
        append(tables, "weights", {"sha256": model.sha256})
        width, number = model.model.config.head_width, config["number"]
        if config["way"] in ("taylor", "polynomial"):
            number = comb(width + number, number)
        if config["way"] != "softened":
            append(tables, "features", {"numbers": number})
    changed = replaced(model.model, config, heads)
    done = tables.get("texts", {}).get("text", [])
    for i in session.through(range(len(texts)), tables, "text {}".format, {*done}):
        for mix in changed:
            mix.places = texts[i].second - 1
        append(tables, "texts", {"text": i, **scores(model.model, texts[i])})
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "far_weights", "other weights for far tokens in the heads that recall, without training",
    TABLES, runs, perform,
)  # fmt: skip
