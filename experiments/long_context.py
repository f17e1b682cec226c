"""A trained model's use of a long past: a repeated passage, and more of the same text.

The race's models, read from their stored weights, on held-out novels. `again`: a passage of 64
bytes is followed by a number of others of the same novel, and comes again. How much better is it
predicted than after the same others, but with another passage in its place? A model that can look
back gains; one that has forgotten does not. `given`: the same bytes are predicted with more and
more of the text before them, and no other change. Both go beyond a model's training context.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from lsa.gpt import GPT

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.learning.batches import VALIDATION_SPANS, held_out_tokens
from .recipes import model_of, reading_runs

PASSAGE = 64  # bytes of the repeated passage; its first bytes are left out
LEAD = 8  # bytes after which a model can recognise the passage
BASE = {
    "scale": "nano",
    "corpus": "novels",
    "places": 40,  # eight in each of the five held-out novels
    "distances": [64, 256, 1024, 4096, 16384],
    "given": [16, 64, 256, 1024, 4096, 16384],
}
SMOKE = {"places": 5, "distances": [64, 128], "given": [16, 64]}
TABLES = {
    "weights": table(sha256=("name", "of the file of weights that was read")),
    "again": table(
        distance=("tokens", "from the passage to its second coming"),
        gain=("nats/token", "loss without the passage before it, minus loss with it"),
        error=("nats/token", "standard error of the gain over the places"),
        loss=("nats/token", "loss of the passage when it comes again"),
        places=("number", "how many passages"),
    ),
    "given": table(
        given=("tokens", "how much of the text stands before the bytes to predict"),
        loss=("nats/token", "mean loss of these bytes"),
        gain=("nats/token", "loss with the least text given, minus this loss"),
        error=("nats/token", "standard error of the gain over the places"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """The race's models whose weights are stored; all first seeds before the second ones."""
    rest = SMOKE if smoke else {}
    return [
        Run("long_context", name, {**BASE, **read, **rest}, 300 + 100 * read["seed"])
        for name, read in reading_runs(smoke).items()
    ]


@torch.no_grad()
def losses(model: GPT, tokens: torch.Tensor, last: int) -> torch.Tensor:
    """Loss of each of the last `last` tokens of a text [T], [last] in nats."""
    logits = model(tokens[None, :-1])[0, -last:].float()
    return F.cross_entropy(logits, tokens[-last:], reduction="none").cpu().double()


def texts(config: dict[str, Any], session: Session) -> torch.Tensor:
    """Held-out text for every place, [places, length + 1], the last byte being the newest."""
    length = max(*config["given"], *config["distances"]) + 2 * PASSAGE
    corpus = session.corpus(config["corpus"])
    inputs, _ = held_out_tokens(
        corpus.splits["validation"], span=length, context=length, spans=config["places"]
    )
    return inputs.to(session.device)


def met_before(model: GPT, text: torch.Tensor, other: torch.Tensor, distance: int) -> tuple:
    """Loss of a passage's second occurrence, after the passage and after another in its place.

    text, other [length]: the passage opens `text`; the text between follows it.
    """
    passage, between = text[:PASSAGE], text[PASSAGE:distance]
    found = []
    for first in (passage, other[:PASSAGE]):
        whole = torch.cat((first, between, passage))
        found.append(losses(model, whole, PASSAGE - LEAD).mean().item())
    return found[0], found[1]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    model, sha256 = model_of(config, session.places, session.device)
    pieces = texts(config, session)
    others = pieces.roll(VALIDATION_SPANS, 0)  # from elsewhere in the same novel
    tables: Tables = {}
    append(tables, "weights", {"sha256": sha256})
    for distance in session.through(config["distances"], tables, "again after {}".format):
        both = [
            met_before(model, text, other, distance)
            for text, other in zip(pieces, others, strict=True)
        ]
        gains = np.array([without - with_it for with_it, without in both])
        row = {
            "distance": distance,
            **_mean_and_error(gains),
            "loss": round(float(np.mean([with_it for with_it, _ in both])), 5),
            "places": len(both),
        }
        append(tables, "again", row)
    least = None
    for given in session.through(config["given"], tables, "given {}".format):
        found = np.array(
            [losses(model, text[-given - PASSAGE :], PASSAGE).mean().item() for text in pieces]
        )
        least = found if least is None else least
        gain = _mean_and_error(least - found)
        row = {"given": given, "loss": round(float(found.mean()), 5), **gain}
        append(tables, "given", row)
    return Outcome(tables, session.whole)


def _mean_and_error(values: np.ndarray) -> dict[str, float]:
    error = values.std(ddof=1) / len(values) ** 0.5
    return {"gain": round(float(values.mean()), 5), "error": round(float(error), 5)}


EXPERIMENT = Experiment(
    "long_context", "what a trained model does with a long past", TABLES, runs, perform
)
