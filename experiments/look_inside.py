"""Where each head of a trained model looks on a page of text, and its guesses without some heads.

SmolLM2-135M-Instruct reads a page of a held-out novel. Its last 40 tokens occurred on the page
before, with 128 tokens between. Stored are the attention weights of all heads, and the model's
three most likely tokens at each place of the passage's return. These guesses are made with all
heads free, with one head confined to its window and the first tokens, and with the first n heads of
the ranking confined together. Each set of heads is a pass of its own. The ranking is that of
`remove_exponential`, from other novels.

Beside a record lie these arrays. Shares are in thousandths, so rounding changes one by at most half
a thousandth. For each token and head the `config.largest` largest weights are stored, if they are
at least `config.least`; the table `kept` has their share of the attention. `counts`
[layers, heads, T] has their number. `places`, `low` and `high` follow one another in that order:
the token looked at, and the weight, low + 256 high. `guesses`, `shares` [sets, passage, 3]: the
most likely tokens by their row in `vocabulary`, in order, and their probabilities. `wanted`
[sets, passage]: the probability of the actual token. Sets are in the order of the table `sets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lsa.layers.mixes import SoftmaxMix
from lsa.llama import Attention, Llama
from lsa.llama_files import Text, smollm2_path

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.core.weights import pack_arrays
from .harness.learning.returning import LEAD, passages, trained
from .recipes import ranked_heads

ALONE = 40  # heads of the ranking that are confined one by one
FIRST = [*range(1, 41), 270]  # heads of the ranking that are confined together
LIKELIEST = 3
BASE: dict[str, Any] = {
    "model": "SmolLM2-135M-Instruct",
    "corpus": "novels",
    "split": "test",
    "seed": 0,
    "texts": 5,
    "lead": 16,
    "passage": 40,
    "distance": 128,
    "largest": 6,
    "least": 0.01,
    "order": "gradient",
    "alone": ALONE,
    "first": FIRST,
    "attention": {"kind": "window", "window": 64, "first": 4},
}
SMOKE = {
    "model": "tiny",
    "lead": 4,
    "passage": 10,
    "distance": 60,
    "order": "counted",
    "alone": 3,
    "first": [1, 3, 8],
    "attention": {"kind": "window", "window": 16, "first": 2},
}
TABLES = {
    "weights": table(sha256=("name", "of the model's file")),
    "ranking": table(
        layer=("number", "of a head, the most important first; from 0"),
        head=("number", "from 0"),
    ),
    "tokens": table(
        token=("number", "in the model's vocabulary, in the order of the page"),
        text=("text", "its letters"),
    ),
    "vocabulary": table(
        guess=("number", "a token that is among the likeliest somewhere"),
        letters=("text", "its letters"),
    ),
    "sets": table(
        where=(
            "name",
            "which heads are confined: `none`, one `head`, the `first` of the ranking; "
            "`once`: none, and the passage is looked at where it stands first",
        ),
        number=("number", "place of the head in the ranking, from 0; or how many are the first"),
        right=("number", "of the passage's tokens that were the likeliest"),
        loss=("nats/token", "mean over the passage"),
    ),
    "kept": table(
        mean=("share", "of a token's attention that the stored weights hold, mean over heads"),
        again=("share", "the same, of the tokens of the passage where it returns"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """The plan, a text each; a run takes some ten minutes on one CPU thread."""
    if smoke:
        return [Run("look_inside", "text-0", {**BASE, **SMOKE, "text": 0}, 0)]
    if kind != "cpu":  # the weights come in a package that a GPU machine may lack
        return []
    texts = (3, 2, 0)
    return [
        Run("look_inside", f"text-{text}", {**BASE, "text": text}, 700 + i)
        for i, text in enumerate(texts)
    ]


class Page(NamedTuple):
    """A text [T], and the places [n] of its passage, first and again."""

    tokens: Tensor
    first: Tensor
    second: Tensor


def page(config: dict[str, Any], session: Session) -> Page:
    """The text of a run: one of `passages`, shortened."""
    lead, passage, distance = (config[name] for name in ("lead", "passage", "distance"))
    texts = passages(
        session.corpus(config["corpus"]).splits[config["split"]],
        trained(config["model"]).tokens,
        distance=distance,
        texts=config["texts"],
    )
    tokens = texts[config["text"]].tokens[LEAD - lead : LEAD + passage + distance]
    first = torch.arange(lead, lead + passage)
    return Page(torch.cat((tokens, tokens[first])), first, first + passage + distance)


class Looking(nn.Module):
    """Softmax attention that stores its weights, [H, T, T]."""

    def __init__(self, full: SoftmaxMix) -> None:
        super().__init__()
        self.full = full
        self.weights = torch.zeros(0)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        queries, keys = q[0].transpose(0, 1), self.full.spread(k)[0].transpose(0, 1)
        ahead = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(1)
        scores = queries @ keys.mT * q.shape[-1] ** -0.5
        self.weights = scores.masked_fill(ahead, float("-inf")).softmax(-1)
        return self.full(q, k, v)


@torch.no_grad()
def looks(model: Llama, tokens: Tensor) -> Tensor:
    """Attention weights of all heads on a text [T], none confined: [layers, H, T, T]."""
    model.attend({})
    watched = [Looking(block.self_attn.mixes[0]) for block in model.blocks]  # type: ignore
    for block, mix in zip(model.blocks, watched, strict=True):
        block.self_attn.mixes[0] = mix
    model.hidden(tokens[None])
    model.attend({})
    return torch.stack([mix.weights for mix in watched])


def kept_weights(A: Tensor, largest: int, least: float) -> Tensor:
    """Mask of the attention weights [..., T, T] that are stored."""
    smallest = A.topk(min(largest, A.shape[-1]), -1).values[..., -1:]
    return (smallest <= A) & (least <= A)


def packed_looks(A: Tensor, kept: Tensor) -> dict[str, np.ndarray]:
    """The arrays that hold the stored weights of [layers, H, T, T]."""
    if A.shape[-1] > 256:
        raise ValueError(f"A: expected at most 256 tokens, got {A.shape[-1]}")
    weights = _thousandths(A[kept])
    return {
        "counts": kept.sum(-1).numpy().astype(np.uint8),
        "places": kept.nonzero()[:, -1].numpy().astype(np.uint8),
        "low": (weights % 256).astype(np.uint8),  # separate, since most of the others are zero
        "high": (weights // 256).astype(np.uint8),
    }


def _thousandths(shares: Tensor) -> np.ndarray:
    return (1000 * shares).round().numpy().astype(np.uint16)


class Guesses(NamedTuple):
    """The likeliest tokens [n, LIKELIEST], their probabilities, and those of the tokens [n]."""

    tokens: Tensor
    shares: Tensor
    wanted: Tensor


def guesses(model: Llama, x: Tensor, wanted: Tensor) -> Guesses:
    """Guesses for the tokens wanted [n], from the head's input before each, [n, D]."""
    shares = model.head(x).softmax(-1)
    likeliest = shares.topk(LIKELIEST)
    return Guesses(likeliest.indices, likeliest.values, shares.gather(1, wanted[:, None])[:, 0])


Confined = tuple[str, int, list[tuple[int, int]]]


def sets(ranking: list[tuple[int, int]], first: Iterable[int], alone: int) -> Iterator[Confined]:
    """Every set of confined heads: `where` and `number` of its row, and its heads."""
    yield "none", 0, []
    for number in first:
        yield "first", number, ranking[:number]
    for number, head in enumerate(ranking[:alone]):
        yield "head", number, [head]


def confined_guesses(
    model: Llama, text: Page, attention: dict[str, Any], heads: list[tuple[int, int]],
    inputs: list[Tensor],
) -> Guesses:  # fmt: skip
    """Guesses of the model at the passage's return while these heads are confined.

    inputs: of each layer when no head is confined; layers below the first confined one have the
    same.
    """
    chosen: Attention = {f"{layer}.{head}": attention for layer, head in heads}
    model.attend(chosen)
    lowest = min((layer for layer, _ in heads), default=len(model.blocks))
    x = inputs[lowest]
    for block in model.blocks[lowest:]:
        x = block(x)
    return guesses(model, x[0, text.second - 1], text.tokens[text.second])


def _letters(config: dict[str, Any], tokens: list[int]) -> list[str]:
    if config["model"] == "tiny":
        return [chr(token) for token in tokens]
    text = Text.of(smollm2_path())
    return [text.text([token]) for token in tokens]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. The arrays are stored beside its record."""
    model, text = trained(config["model"]), page(config, session)
    ranking = _ranking(config, session)
    tables: Tables = {}
    append(tables, "weights", {"sha256": model.sha256})
    for layer, head in ranking:
        append(tables, "ranking", {"layer": layer, "head": head})
    ids = text.tokens.tolist()
    for token, letters in zip(ids, _letters(config, ids), strict=True):
        append(tables, "tokens", {"token": token, "text": letters})
    A = looks(model.model, text.tokens)
    kept = kept_weights(A, config["largest"], config["least"])
    arrays = packed_looks(A, kept)
    shares = (A * kept).sum(-1)
    held = {"mean": shares.mean().item(), "again": shares[..., text.second].mean().item()}
    append(tables, "kept", {name: round(value, 5) for name, value in held.items()})
    found = _all_guesses(model.model, text, ranking, config, tables, session)
    if found is None:
        return Outcome(tables, complete=False)
    vocabulary, rows = torch.stack([one.tokens for one in found]).unique(return_inverse=True)
    names = _letters(config, vocabulary.tolist())
    for token, letters in zip(vocabulary.tolist(), names, strict=True):
        append(tables, "vocabulary", {"guess": token, "letters": letters})
    arrays["guesses"] = rows.numpy().astype(np.uint16)
    arrays["shares"] = _thousandths(torch.stack([one.shares for one in found]))
    arrays["wanted"] = _thousandths(torch.stack([one.wanted for one in found]))
    session.keep_weights(pack_arrays(arrays))
    return Outcome(tables)


def _ranking(config: dict[str, Any], session: Session) -> list[tuple[int, int]]:
    if config["order"] == "counted":  # a model without a ranking
        shape = trained(config["model"]).model.config
        return [(layer, head) for layer in range(shape.n_layer) for head in range(shape.n_head)]
    return ranked_heads(config["model"], "passages", config["order"], session.places)


@torch.no_grad()
def _all_guesses(
    model: Llama, text: Page, ranking: list[tuple[int, int]], config: dict[str, Any],
    tables: Tables, session: Session,
) -> list[Guesses] | None:  # fmt: skip
    """Guesses for every row of the table `sets`, which is filled. None if out of time."""
    model.attend({})
    inputs = [model.embed(text.tokens[None])]
    for block in model.blocks:
        inputs.append(block(inputs[-1]))
    once = guesses(model, inputs[-1][0, text.first - 1], text.tokens[text.first])
    found: list[Guesses] = []
    every = [*sets(ranking, config["first"], config["alone"])]

    def note(where: str, number: int, one: Guesses) -> None:
        right = (one.tokens[:, 0] == text.tokens[text.first]).sum().item()
        loss = -one.wanted.log().mean().item()
        row = {"where": where, "number": number, "right": right, "loss": round(loss, 5)}
        append(tables, "sets", row)
        found.append(one)

    note("once", 0, once)
    for i, (where, number, heads) in enumerate(every):
        if session.out_of_time():
            return None
        note(where, number, confined_guesses(model, text, config["attention"], heads, inputs))
        session.show(i + 1, len(every), f"{where} {number}")
    model.attend({})
    return found


EXPERIMENT = Experiment(
    "look_inside", "where a trained model's heads look on a page, and its guesses without some",
    TABLES, runs, perform,
)  # fmt: skip
