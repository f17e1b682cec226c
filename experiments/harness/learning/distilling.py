"""Distillation: a trained model teaches copies of itself with other attention.

A student is the teacher with some heads that attend differently. First the features and balances of
its mixes are fitted to the outputs of the teacher's heads, from the teacher's q, k, v. Then q, k, v
and o of these layers learn through the whole model. The loss is the divergence of the student's
next-token distribution from the teacher's. All other weights are fixed and shared in memory. The
students of a run, its arms, see the same texts in the same order; the teacher reads each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lsa.llama import Attention, Llama, placed

from ..core import checkpoint
from ..core.checkpoint import CheckpointError
from ..core.plan import Leg
from ..core.tables import Tables, append
from .prepared import Split
from .returning import LETTERS, PASSAGE, Tokens, Trained

AT_ONCE = 256  # positions whose logits exist at the same time


def teaching_texts(
    split: Split, tokens: Tokens, *, seed: int, update: int, texts: int, length: int
) -> Tensor:
    """The texts of an update [texts, length] from a split of bytes, drawn by seed and number.

    In every second text a passage comes again, after at least `PASSAGE` tokens.
    """
    rng = np.random.default_rng((seed, update))
    sizes = np.diff(split.starts)
    found = []
    for i in range(texts):
        document = int(rng.choice(len(sizes), p=sizes / sizes.sum()))
        start, end = (int(place) for place in split.starts[document : document + 2])
        start += int(rng.integers(max(end - start - LETTERS * length, 1)))
        text = bytes(split.tokens[start : min(start + LETTERS * length, end)])
        text = text.decode(errors="ignore")
        piece = tokens(text[max(text.find(" "), 0) :])[: length - PASSAGE * (i % 2)]
        if i % 2:
            distance = int(rng.integers(PASSAGE, len(piece) - PASSAGE + 1))
            at = int(rng.integers(len(piece) - PASSAGE - distance + 1))
            then = at + PASSAGE + distance
            piece = piece[:then] + piece[at : at + PASSAGE] + piece[then:]
        if len(piece) < length:
            raise ValueError(f"length: expected at most {len(piece)} tokens, got {length}")
        found.append(piece)
    return torch.tensor(found)


class Student:
    """The teacher with other attention; its mixes and q, k, v, o of some layers are its own."""

    def __init__(
        self, teacher: Llama, attention: Attention, layers: Iterable[int], config: dict[str, Any]
    ) -> None:
        torch.manual_seed(config["seed"])
        layers = set(layers)
        own = {id(p) for n in layers for p in teacher.blocks[n].self_attn.parameters()}
        shared = {id(p): p for p in teacher.parameters() if id(p) not in own}
        self.model: Llama = deepcopy(teacher, shared)
        self.model.attend(attention)
        for n in layers:
            self.model.blocks[n].self_attn.requires_grad_(True)
        named = [(name, p) for name, p in self.model.named_parameters() if p.requires_grad]
        self.learned = dict(named)
        self.mixes = [p for name, p in named if ".mixes." in name]
        weights = [p for name, p in named if ".mixes." not in name]
        # Updates have few tokens, so squared gradients are averaged over many updates.
        self.optimizer = torch.optim.AdamW(
            [{"params": weights}, {"params": self.mixes}], betas=(0.9, 0.99), weight_decay=0.0
        )

    def step(self, *, weights: float, mixes: float) -> None:
        """Make an optimizer step with these learning rates."""
        for group, rate in zip(self.optimizer.param_groups, (weights, mixes), strict=True):
            group["lr"] = rate
        torch.nn.utils.clip_grad_norm_(self.learned.values(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Any]:
        learned = {name: p.detach() for name, p in self.learned.items()}
        return {"learned": learned, "optimizer": self.optimizer.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        """Load a state. Raises KeyError, RuntimeError or ValueError for another student's."""
        with torch.no_grad():
            for name, p in self.learned.items():
                p.copy_(state["learned"][name])
        self.optimizer.load_state_dict(state["optimizer"])


def fit_features(teacher: Llama, students: Sequence[Student], tokens: Tensor) -> list[float]:
    """Add the gradients of the students' error on the teacher's head outputs; returns the errors.

    The error is squared error over squared output, a mean over layers, with the teacher's q, k, v.
    """
    missed = [0.0] * len(students)
    with torch.no_grad():
        x = teacher.embed(tokens)
    for n, block in enumerate(teacher.blocks):
        with torch.no_grad():
            q, k, v = block.self_attn.qkv(block.input_layernorm(x), 0)
            o = block.self_attn.mixes[0](q, k, v)
            x = x + block.self_attn.o_proj(o.flatten(-2))
            x = x + block.mlp(block.post_attention_layernorm(x))
        for i, student in enumerate(students):
            attention = student.model.blocks[n].self_attn
            for place, (heads, keys) in enumerate(attention.parts):
                mix = attention.mixes[place]
                if not any(p.requires_grad for p in mix.parameters()):
                    continue
                wanted = o[:, :, heads]
                q_k = placed(mix, q[:, :, heads], k[:, :, keys], 0, teacher.config.rope_base)
                found = mix(*q_k, v[:, :, keys])
                error = (found - wanted).square().mean() / wanted.square().mean()
                (error / len(teacher.blocks)).backward()
                missed[i] += error.item() / len(teacher.blocks)
    return missed


def fitted(
    config: dict[str, Any], attention: Attention, trained: Trained, splits: Mapping[str, Split]
) -> Llama:
    """The teacher with other attention, whose features are fitted and nothing else is trained.

    config: as for a `Distillation`, without what its training needs.
    """
    layers = range(trained.model.config.n_layer)
    one = Distillation(config, {"fitted": attention}, layers, trained, splits)
    while one.tokens < 0:
        one.update()
    return one.students["fitted"].model.requires_grad_(False)


@torch.no_grad()
def predictions(teacher: Llama, tokens: Tensor) -> Tensor:
    """Log probabilities of the next token, [B T, vocab_size]."""
    x = teacher.hidden(tokens).flatten(0, 1)
    return torch.cat([teacher.head(part).log_softmax(-1) for part in x.split(AT_ONCE)])


def teach(student: Llama, tokens: Tensor, wanted: Tensor) -> float:
    """Add the gradients of the student's divergence from `predictions`; returns it, in nats.

    Text by text: states of long texts need gigabytes for their gradients.
    """
    total = 0.0
    for text, wanted_there in zip(tokens.split(1), wanted.split(tokens.shape[1]), strict=True):
        x, grads = student.hidden(text), []
        for part, target in zip(
            x.detach()[0].split(AT_ONCE), wanted_there.split(AT_ONCE), strict=True
        ):
            part.requires_grad_()
            found = student.head(part).log_softmax(-1)
            loss = F.kl_div(found, target, log_target=True, reduction="sum") / len(wanted)
            loss.backward()
            grads.append(cast("Tensor", part.grad))
            total += loss.item()
        if x.requires_grad:
            x.backward(torch.cat(grads).view_as(x))
    return total


class Distillation:
    """The students of a run, with their tables so far.

    config: seed, texts (an update), length (of a text), feature_tokens and tokens (to learn from;
        multiples of an update's), feature_rate, mix_rate, learning_rate, warmup_updates.
    """

    def __init__(
        self,
        config: dict[str, Any],
        arms: Mapping[str, Attention],
        layers: Sequence[int],
        trained: Trained,
        splits: Mapping[str, Split],
    ) -> None:
        self.config, self.trained, self.splits = config, trained, splits
        self.students = {
            name: Student(trained.model, attention, layers, config)
            for name, attention in arms.items()
        }
        self.tables: Tables = {}
        append(self.tables, "weights", {"sha256": trained.sha256})
        self.done = 0  # updates, of features and of weights

    @property
    def an_update(self) -> int:
        """Tokens of an update."""
        return self.config["texts"] * self.config["length"]

    @property
    def tokens(self) -> int:
        """Tokens learned from through the whole model; negative while features are learned."""
        return self.done * self.an_update - self.config["feature_tokens"]

    def update(self) -> None:
        """Make one update of every student, on the same texts."""
        tokens = teaching_texts(
            self.splits["train"], self.trained.tokens, seed=self.config["seed"], update=self.done,
            texts=self.config["texts"], length=self.config["length"],
        )  # fmt: skip
        if self.tokens < 0:
            self._learn_features(tokens)
        else:
            self._learn_weights(tokens)
        self.done += 1

    def _learn_features(self, tokens: Tensor) -> None:
        learners = {name: one for name, one in self.students.items() if one.mixes}
        if not learners:
            return
        missed = fit_features(self.trained.model, [*learners.values()], tokens)
        for (name, student), share in zip(learners.items(), missed, strict=True):
            student.step(weights=0.0, mixes=self.config["feature_rate"])
            row = {"arm": name, "update": self.done + 1, "missed": round(share, 5)}
            append(self.tables, "features", row)

    def _learn_weights(self, tokens: Tensor) -> None:
        wanted = predictions(self.trained.model, tokens)
        begun = self.tokens // self.an_update + 1
        warm = min(1.0, begun / self.config["warmup_updates"])
        for name, student in self.students.items():
            divergence = teach(student.model, tokens, wanted)
            student.step(
                weights=warm * self.config["learning_rate"], mixes=warm * self.config["mix_rate"]
            )
            row = {"arm": name, "tokens": self.tokens, "divergence": round(divergence, 5)}
            append(self.tables, "train", row)

    def save(self, path: Path, legs: Sequence[Leg]) -> None:
        """Write a checkpoint. Raises OSError."""
        contents = {
            "config": self.config,
            "students": {name: one.state() for name, one in self.students.items()},
            "tables": self.tables,
            "done": self.done,
            "legs": [*legs],
        }
        checkpoint.save(path, contents)

    def resume(self, path: Path, besides: Sequence[str] = ()) -> list[Leg]:
        """Continue from a checkpoint of this configuration, except for some keys; returns its legs.

        Raises CheckpointError for a checkpoint of another configuration.
        """
        kept = checkpoint.load(path, torch.device("cpu"))
        try:
            before, now = (
                {key: value for key, value in config.items() if key not in besides}
                for config in (kept["config"], self.config)
            )
            if before != now:
                raise CheckpointError("of another configuration")
            for name, student in self.students.items():
                student.load(kept["students"][name])
            self.tables, self.done = kept["tables"], kept["done"]
            return kept["legs"]
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise CheckpointError("not a checkpoint of this run") from error
