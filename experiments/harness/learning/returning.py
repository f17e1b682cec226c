"""Texts in which something comes again, and a trained model's loss the second time.

`passages`: 64 tokens of a held-out novel come again after a distance in the same novel. `unseen`:
their control, in which another passage stood first. `recall_in_text`: a list of names and room
numbers in plain English, then a piece of a novel, then the list again in another order. Only the
numbers are scored, and only the first list gives them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lsa.llama import Llama, LlamaConfig
from lsa.llama_files import Text, load_llama, smollm2_path

from .prepared import Split

PASSAGE = 64  # tokens that come again
LEAD = 64  # tokens before them, so that no passage opens a text
PAIRS = 8  # names in a list
LETTERS = 8  # letters of text read per token; a token has four or five
AT_ONCE = 512  # positions whose logits exist at the same time
Tokens = Callable[[str], list[int]]

FIRST_NAMES = (
    "Alice", "Arthur", "Clara", "David", "Edith", "Edward", "Emma", "Frank", "George", "Grace",
    "Harriet", "Helen", "Henry", "Hugh", "Isabel", "James", "Jane", "John", "Kate", "Louis",
    "Lucy", "Martin", "Mary", "Oliver", "Peter", "Philip", "Robert", "Rose", "Sarah", "Thomas",
)  # fmt: skip
SURNAMES = (
    "Adams", "Baker", "Barnes", "Bennett", "Brown", "Carter", "Clark", "Cooper", "Davies",
    "Evans", "Fisher", "Foster", "Green", "Harris", "Hill", "Hughes", "King", "Lewis", "Marsh",
    "Moore", "Morris", "Palmer", "Parker", "Reed", "Shaw", "Stone", "Turner", "Ward", "Webb",
    "Wood",
)  # fmt: skip


@dataclass(frozen=True)
class Returning:
    """A text in which something comes again.

    source: which novel, or `list`. tokens: [T]. first, second: [n], positions of the scored tokens
        at their first and second place.
    """

    source: int
    tokens: Tensor
    first: Tensor
    second: Tensor


def _pieces(split: Split, tokens: Tokens, length: int, texts: int) -> Iterator[tuple[int, list]]:
    """`texts` pieces of `length` tokens from a split of bytes, evenly spread over its documents."""
    documents = len(split.starts) - 1
    for i in range(texts):
        source = i % documents
        start, end = (int(place) for place in split.starts[source : source + 2])
        share = (i // documents + 0.5) / -(-texts // documents)
        at = start + int(share * max(end - start - LETTERS * length, 0))
        text = bytes(split.tokens[at : min(at + LETTERS * length, end)]).decode(errors="ignore")
        found = tokens(text[max(text.find(" "), 0) :])[:length]  # starting with a whole word
        if len(found) < length:
            raise ValueError(f"length: expected at most {len(found)} tokens, got {length}")
        yield source, found


def passages(
    split: Split, tokens: Tokens, *, distance: int, texts: int, lead: int = LEAD
) -> list[Returning]:
    """Texts in which `PASSAGE` tokens come again after `distance` others of the same novel.

    lead: tokens before the passage.
    """
    found = []
    for source, piece in _pieces(split, tokens, lead + PASSAGE + distance, texts):
        whole = torch.tensor(piece + piece[lead : lead + PASSAGE])
        first = torch.arange(lead, lead + PASSAGE)
        found.append(Returning(source, whole, first, first + PASSAGE + distance))
    return found


def unseen(split: Split, tokens: Tokens, *, distance: int, texts: int) -> list[Returning]:
    """The texts of `passages` with another passage of the same novel in the first place.

    The passage in the second place is the same, but is read for the first time. The difference of
    the losses is the gain from the copy. Raises ValueError if a novel has only one text.
    """
    found = passages(split, tokens, distance=distance, texts=texts)
    swapped = []
    for i, text in enumerate(found):
        same = [j for j, other in enumerate(found) if other.source == text.source]
        if len(same) < 2:
            raise ValueError(f"texts: expected two or more of each novel, got {texts}")
        other = found[same[(same.index(i) + 1) % len(same)]]
        whole = text.tokens.clone()
        whole[text.first] = other.tokens[other.first]
        swapped.append(Returning(text.source, whole, text.first, text.second))
    return swapped


def recall_in_text(
    split: Split, tokens: Tokens, *, distance: int, texts: int, seed: int, pairs: int = PAIRS
) -> list[Returning]:
    """Lists of `pairs` names and numbers that come again after `distance` tokens of a novel.

    pairs: at most 900, so that all names differ.
    """
    rng = np.random.default_rng(seed)
    found = []
    for source, piece in _pieces(split, tokens, distance, texts):
        i, j = rng.permutation(len(FIRST_NAMES)), rng.permutation(len(SURNAMES))
        n = np.arange(pairs)  # the second thirty pair the same names differently
        i, j = i[n % len(i)], j[(n + n // len(i)) % len(j)]
        names = [f"{FIRST_NAMES[a]} {SURNAMES[b]}" for a, b in zip(i, j, strict=True)]
        numbers = rng.integers(100, 1000, pairs)
        whole = tokens("The guests of the house and their rooms:\n")
        places = []
        for order, then in ((range(pairs), piece), (rng.permutation(pairs), [])):
            at = {}
            for pair in order:
                whole += tokens(f"{names[pair]} has room ")
                digits = tokens(str(numbers[pair]))
                at[int(pair)] = range(len(whole), len(whole) + len(digits))
                whole += [*digits, *tokens(".\n")]
            places.append([place for pair in range(pairs) for place in at[pair]])
            whole += [*then, *tokens("\nOnce more, the guests and their rooms:\n")] if then else []
        first, second = (torch.tensor(place) for place in places)
        found.append(Returning(source, torch.tensor(whole), first, second))
    return found


def token_losses(model: Llama, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Loss of each token but the first of a text [T], and whether it was likeliest: [T - 1]."""
    x = model.hidden(tokens[None, :-1])[0]
    losses, right = [], []
    for some, wanted in zip(x.split(AT_ONCE), tokens[1:].split(AT_ONCE), strict=True):
        logits = model.head(some)
        losses.append(F.cross_entropy(logits, wanted, reduction="none"))
        right.append(logits.argmax(-1) == wanted)
    return torch.cat(losses), torch.cat(right)


def scores(model: Llama, text: Returning) -> dict[str, float | int]:
    """A row of the table `texts` below, without its column `text`."""
    with torch.no_grad():
        losses, right = token_losses(model, text.tokens)
    rest = torch.ones_like(right)
    rest[text.first - 1] = rest[text.second - 1] = False
    found = {
        "loss": losses[rest],
        "first": losses[text.first - 1],
        "second": losses[text.second - 1],
        "right": right[text.second - 1].float(),
    }
    means = {name: round(values.mean().item(), 5) for name, values in found.items()}
    return {"source": text.source, **means, "gain": round(means["first"] - means["second"], 5)}


SCORES = {
    "text": ("number", "which text, from 0"),
    "source": ("number", "of which held-out novel, in the order of their names"),
    "loss": ("nats/token", "mean over tokens that come once"),
    "first": ("nats/token", "mean loss of the part that comes again, the first time"),
    "second": ("nats/token", "the same, the second time"),
    "right": ("share", "of its tokens that were the likeliest, the second time"),
    "gain": ("nats/token", "`first` minus `second`"),
}


@dataclass(frozen=True)
class Trained:
    """A trained model, its tokenizer, and the SHA-256 of its file."""

    model: Llama
    tokens: Tokens
    sha256: str


def trained(name: str) -> Trained:
    """The model called SmolLM2-135M-Instruct; or `tiny`, a random model of bytes for trials.

    It is loaded once. Its heads attend as trained, however an earlier run left them. Raises
    ValueError if the model's package is not installed.
    """
    found = _loaded(name)
    found.model.attend({})
    return found


@cache
def _loaded(name: str) -> Trained:
    if name == "tiny":
        torch.manual_seed(0)
        shape = LlamaConfig(
            vocab_size=256, n_layer=2, n_head=4, n_kv_head=2, head_width=8, d_model=16, d_mlp=32
        )
        model = Llama(shape)
        return Trained(model.requires_grad_(False), lambda text: [*text.encode()], "0" * 64)
    path: Path = smollm2_path()
    if not path.name.startswith(name):
        raise ValueError(f"model: expected {path.name}, got {name}")
    model = load_llama(path).requires_grad_(False)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Trained(model, Text.of(path).tokens, digest)
