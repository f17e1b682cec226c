"""Data of the stage `surgery` before any interaction: operations on a state, computed with lsa.

The page does the same with the same model once it is loaded.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from IPython.display import HTML
from torch import Tensor

from lsa import LinearState
from lsa.gpt import GPT

from ...explorable.markup import json_script
from ..index import race
from ..lib.format import in_words, percent
from ..lib.records import NotMeasuredError, Record, load, of_config, provenance, weights_of
from ..lib.tables import Missing
from . import writers

TEXT = "The captain stood on the deck of the ship, and the cap"
SECOND = "The ship, the sea and the storm were far from the shore, said the captain to the mate. "
PICKED = "the"  # its last occurrence
SHARE = 0.5  # of the second text's state that is added
LIKELY = 5  # number of next letters shown
WORD = re.compile(rb"[A-Za-z0-9'\x80-\xff-]+")


def trained() -> Record:
    """The run of the stage's model, small enough to try all words at a press.

    Raises NotMeasuredError.
    """
    stored = [run for run in load("race") if run["complete"] and weights_of(run)]
    return of_config(stored, model="linear", context=race.MAIN, seed=0)


class Operated(NamedTuple):
    """A state after an operation and the last letter, and the next letter's probabilities [256]."""

    state: Any
    shares: Tensor


class Reading:
    """A text that the linear writer has read but for its last letter, which follows operations.

    S [layers, H, K, V], z [layers, H, K]: its sums. f, v [layers, H, T, K]: each letter has added
    f ⊗ v, which decays by log_decay [H] a letter.
    """

    @torch.no_grad()
    def __init__(self, model: GPT, text: bytes) -> None:
        self.machine = model.double().machine()
        read = torch.tensor([[*text[:-1]]], dtype=torch.long)
        self.last = torch.tensor([text[-1]])
        self.state, _ = self.machine.prefill(self.machine.initial_state, read)
        self.S, self.z = (
            torch.cat(parts) for parts in zip(*writers.layers(self.state), strict=True)
        )
        features, values, x = [], [], model.embed(read)
        self.log_decay: Tensor = model.blocks[0].attn.log_decay.double()  # type: ignore
        for block in model.blocks:
            _, k, v = block.attn.qkv(block.ln_1(x))  # type: ignore
            features.append(F.elu(k[0].transpose(0, 1)) + 1)
            values.append(v[0].transpose(0, 1))
            x = block(x)
        self.f, self.v = torch.stack(features), torch.stack(values)
        self.length = read.shape[1]

    def products(self, start: int, end: int) -> tuple[Tensor, Tensor]:
        """The part of S and z that letters start..end added, with its decay up to now."""
        ages = self.length - 1 - torch.arange(start, end)
        keep = torch.exp(self.log_decay[:, None] * ages)[None, :, :, None]  # [1, H, T, 1]
        f = keep * self.f[:, :, start:end]
        return f.mT @ self.v[:, :, start:end], f.sum(2)

    @torch.no_grad()
    def operated(self, S: Tensor, z: Tensor, share: float) -> Operated:
        """The result of adding `share` of these sums to the state and reading the last letter."""
        changed = zip(self.S + share * S, self.z + share * z, strict=True)
        parts = (LinearState(S[None], z[None]) for S, z in changed)
        state, logits = self.machine.step(writers.with_layers(self.state, parts), self.last)
        return Operated(state, logits[0].softmax(-1))

    def sizes(self, S: Tensor) -> list[float]:
        """The size of these sums relative to the state's, by head: the mean over layers."""
        return (S.norm(dim=(2, 3)) / self.S.norm(dim=(2, 3))).mean(0).tolist()


def whole_state(one: Reading) -> tuple[Tensor, Tensor]:
    """S and z of a text after its last letter."""
    state, _ = one.machine.step(one.state, one.last)
    S, z = (torch.cat(parts) for parts in zip(*writers.layers(state), strict=True))
    return S, z


def moved(before: Tensor, after: Tensor) -> float:
    """Total variation distance of two next-letter distributions."""
    return (before - after).abs().sum().item() / 2


def words(text: bytes) -> list[tuple[int, int]]:
    """Start and end of each word of a text, without the last letter."""
    return [match.span() for match in WORD.finditer(text[:-1])]


def picked(text: bytes = TEXT.encode()) -> int:
    """Index of the word that is subtracted at first."""
    every = [text[start:end].decode() for start, end in words(text)]
    return max(i for i, word in enumerate(every) if word == PICKED)


def _likely(shares: Tensor) -> list[tuple[int, float]]:
    best = shares.topk(LIKELY)
    return [(i, round(p, 5)) for i, p in zip(*(b.tolist() for b in best[::-1]), strict=True)]


def _shown(reading: Reading, S: Tensor, z: Tensor, share: float) -> dict[str, Any]:
    """The data that the page shows of an operation."""
    before = reading.operated(S, z, 0.0).shares
    after = reading.operated(S, z, share).shares
    return {
        "sizes": [round(abs(share) * size, 4) for size in reading.sizes(S)],
        "moved": round(moved(before, after), 4),
        "likely": _likely(after),
    }


def effects() -> dict[str, Any]:
    """Effects of subtracting each word of the first text, and of adding the second text's state.

    words: each with its place, sizes, moved, likely. other: the same. likely: before an operation.
    Raises NotMeasuredError.
    """
    model = writers.model_of(trained())
    text = TEXT.encode()
    one, second = Reading(model, text), Reading(model, SECOND.encode())
    S, z = whole_state(second)
    return {
        "likely": _likely(one.operated(S, z, 0.0).shares),
        "words": [
            {"place": place, **_shown(one, *one.products(*place), -1.0)} for place in words(text)
        ],
        "other": _shown(one, S, z, SHARE),
    }


def earlier(text: bytes = TEXT.encode()) -> list[int]:
    """Earlier occurrences of the picked word."""
    every = [text[start:end].decode() for start, end in words(text)]
    return [i for i, word in enumerate(every[: picked(text)]) if word == PICKED]


def by_head(i: int) -> list[float]:
    """Change of the next letter's distribution if word i is subtracted from one head of each layer.

    The near-sighted head first. Raises NotMeasuredError.
    """
    reading = Reading(writers.model_of(trained()), TEXT.encode())
    S, z = reading.products(*words(TEXT.encode())[i])
    before = reading.operated(S, z, 0.0).shares
    alone = torch.eye(S.shape[1], dtype=S.dtype)  # a row a head
    return [
        moved(before, reading.operated(S * one[:, None, None], z * one[:, None], -1.0).shares)
        for one in alone
    ]


def data() -> HTML | Missing:
    """JSON in a script element, for the stage.

    The result of `found`; text; second; share of its state; picked, the word; model, as
    `writers.loaded`; megabytes of its file; sources.
    """
    try:
        run, shown = trained(), effects()
    except NotMeasuredError:
        return Missing("race --only seed=0", "No weights of the linear model yet")
    file = weights_of(run)
    shown |= {
        "text": TEXT,
        "second": SECOND,
        "share": SHARE,
        "picked": picked(),
        "model": writers.loaded(run),
        "megabytes": round(writers.loaded_bytes(file) / 1e6, 1),
        "sources": [asdict(source) for source in provenance([run])],
    }
    return HTML(json_script(shown, id="surgery-data", data_files=file))


def numbers() -> dict[str, str]:
    """Numbers for the chapter on sampling: the stage's first text."""

    @cache
    def every() -> list[dict[str, Any]]:
        return effects()["words"]

    def word(i: int) -> dict[str, Any]:
        return every()[i]

    return in_words(
        surgery_picked=lambda: percent(word(picked())["moved"]),
        surgery_earlier=lambda: percent(max(word(i)["moved"] for i in earlier())),
        surgery_first=lambda: percent(word(1)["moved"]),
        surgery_first_size=lambda: percent(word(1)["sizes"][1]),
        surgery_near=lambda: percent(by_head(picked())[0]),
        surgery_far=lambda: percent(by_head(picked())[1]),
    )
