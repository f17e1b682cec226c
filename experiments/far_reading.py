"""Reading novels far beyond the length that a trained model was made for, when no head looks back.

The models are the students of `linearise`. Their heads see a window and the first tokens, with a
state for those between (`state`) or without (`window`). They read held-out novels from the first
token on, one piece after another. Their teacher, with softmax in all heads, was trained to 8,192
positions; it reads that far, and twice as far.

`positions` has every token's loss. At a text's end the machine is asked for something at a given
distance. Each question starts from the same state, so all distances cost one reading. `passages`
asks for a passage of 64 tokens of the novel, as in `linearise`. `needles` asks for a needle: one
sentence with a name and a room's number, which is no part of the novel.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lsa.llama import Llama
from lsa.machines import StateMachine

from .harness.bench.timing import doublings
from .harness.core import checkpoint
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append, table
from .harness.learning.distilling import Student
from .harness.learning.prepared import Split
from .harness.learning.returning import (
    FIRST_NAMES,
    LETTERS,
    PASSAGE,
    SURNAMES,
    Tokens,
    Trained,
    trained,
)

NEAREST = 64  # the smallest distance of a question, and of the first tokens that are averaged
BASE: dict[str, Any] = {
    "model": "SmolLM2-135M-Instruct",
    "corpus": "novels",
    "seed": 0,
    "students": "softmax-0",  # the run of `linearise` whose last students are read
    "arm": "softmax",
    "reach": 65536,
    "piece": 512,
}
SMOKE = {"model": "tiny", "arm": "state", "reach": 600, "piece": 100}
ARMS = {
    "state": {"kind": "window-state", "feature_map": "hedgehog", "window": 64, "first": 4},
    "window": {"kind": "window", "window": 64, "first": 4},
}
TABLES = {
    "weights": table(
        sha256=("name", "of the teacher's file"),
        learned=("tokens", "from which the students had learned; 0 of the teacher"),
    ),
    "positions": table(
        novel=("number", "which of the held-out novels, in the order of their names"),
        begin=("tokens", "position of the first token counted, from 1"),
        end=("tokens", "of the last: twice as far, or the end of what is read"),
        loss=("nats/token", "mean over them; needles are not counted"),
    ),
    "returned": table(
        novel=("number", "as above"),
        kind=("name", "`passages` or `needles`"),
        distance=("tokens", "between it and the question, other needles not counted"),
        first=("nats/token", "mean loss of what is asked for, where it stands in the text"),
        second=("nats/token", "the same in the answer"),
        right=("share", "of the answer's tokens that were the likeliest"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """The plan: first the students far into a text, then their teacher."""
    if smoke:
        return [Run("far_reading", "state-600", {**BASE, **SMOKE, "students": ""}, 0)]
    if kind != "cpu":  # the weights come in a package that a GPU machine may lack
        return []
    plan = [("state", 65536), ("window", 65536), ("softmax", 8192), ("softmax", 16384)]
    return [
        Run("far_reading", f"{arm}-{reach}", {**BASE, "arm": arm, "reach": reach}, 680 + i)
        for i, (arm, reach) in enumerate(plan)
    ]


@dataclass(frozen=True)
class Question:
    """A question at a text's end: prompt and answer, tokens; and the places of the answer [n]."""

    kind: str
    distance: int
    prompt: list[int]
    answer: list[int]
    stood: Tensor


def planted(
    novel: list[int], tokens: Tokens, *, rng: np.random.Generator
) -> tuple[Tensor, Tensor, list[Question]]:
    """A novel with needles [T], a mask of the novel's own tokens [T], and the questions.

    At every distance of 64, 128, … tokens from the end is a needle, and before it the passage.
    """
    distances = doublings(NEAREST, len(novel) // 2)
    i, j = rng.permutation(len(FIRST_NAMES)), rng.permutation(len(SURNAMES))
    text: list[int] = []
    own: list[bool] = []
    found = []
    for n, distance in reversed([*enumerate(distances)]):
        cut = len(novel) - distance  # the needle's place, in the novel's own tokens
        text += novel[sum(own) : cut]
        own += [True] * (cut - sum(own))
        passage = torch.arange(len(text) - PASSAGE, len(text))
        found.append(Question("passages", distance, [], novel[cut - PASSAGE : cut], passage))
        said = tokens(f"\n{FIRST_NAMES[i[n]]} {SURNAMES[j[n]]} has room ")
        digits = tokens(str(rng.integers(100, 1000)))
        stood = torch.arange(len(text) + len(said), len(text) + len(said) + len(digits))
        needle = [*said, *digits, *tokens(".\n")]
        found.append(Question("needles", distance, said, digits, stood))
        text += needle
        own += [False] * len(needle)
    rest = novel[sum(own) :]
    return torch.tensor(text + rest), torch.tensor(own + [True] * len(rest)), found


@torch.no_grad()
def read(
    machine: StateMachine, text: Tensor, session: Session, piece: int
) -> tuple[Any, Tensor, Tensor] | None:
    """The state after a text [T], the logits there, and the loss of each token but the first.

    None if out of time.
    """
    state, losses, last = machine.initial_state, [], torch.empty(0)
    for start in range(0, len(text), piece):
        if session.out_of_time():
            return None
        state, logits = machine.prefill(state, text[None, start : start + piece])
        wanted = text[start + 1 : start + 1 + piece]
        losses.append(F.cross_entropy(logits[0, : len(wanted)], wanted, reduction="none"))
        last = logits[0, -1]
        session.show(min(start + piece, len(text)), len(text), "tokens read")
    return state, last, torch.cat(losses)


@torch.no_grad()
def answered(machine: StateMachine, state: Any, last: Tensor, one: Question) -> tuple[float, float]:
    """Mean loss of an answer's tokens, and the share of them that were most likely."""
    asked = torch.tensor([one.prompt + one.answer])
    _, logits = machine.prefill(state, asked)
    before = torch.cat([last[None], logits[0, :-1]])[len(one.prompt) :]
    answer = torch.tensor(one.answer)
    right = (before.argmax(-1) == answer).float().mean().item()
    return F.cross_entropy(before, answer).item(), right


def beginning(split: Split, document: int, tokens: Tokens, reach: int) -> list[int]:
    """The first tokens of a document. Raises ValueError if it is shorter."""
    start, end = (int(place) for place in split.starts[document : document + 2])
    text = bytes(split.tokens[start : min(start + LETTERS * reach, end)]).decode(errors="ignore")
    found = tokens(text)[:reach]
    if len(found) < reach:
        raise ValueError(f"reach: expected at most {len(found)} tokens, got {reach}")
    return found


def reader(config: dict[str, Any], teacher: Trained, folder: Path) -> tuple[Llama, int]:
    """The model of an arm, and how many tokens taught it. folder: of the results.

    Raises FileNotFoundError if no run of `linearise` has stored its students there.
    """
    if config["arm"] == "softmax":
        return teacher.model, 0
    name = config["students"]
    attention = {"all": ARMS[config["arm"]]}
    student = Student(teacher.model, attention, range(teacher.model.config.n_layer), config)
    if not name:  # for a trial
        return student.model.requires_grad_(False), 0
    ends = sorted(folder.glob(f"linearise/*/.checkpoints/{name}.end.pt"))
    if not ends:
        command = "python -m experiments run linearise --only softmax_heads=0"
        raise FileNotFoundError(f"{folder}/linearise/*/{name}.end.pt: not there; {command}")
    kept = checkpoint.load(ends[0], torch.device("cpu"))
    if kept["config"]["softmax_heads"] or kept["config"]["arms"][config["arm"]] != attention["all"]:
        raise ValueError(f"students: expected those of a run without softmax, got {name}")
    learned = kept["students"][config["arm"]]["learned"]
    with torch.no_grad():
        for key, p in student.learned.items():
            p.copy_(learned[key])
    return student.model.requires_grad_(False), kept["config"]["tokens"]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. It continues after the last complete novel."""
    teacher = trained(config["model"])
    tables = session.go_on()
    model, learned = reader(config, teacher, session.checkpoint.parents[3])
    if not tables:
        append(tables, "weights", {"sha256": teacher.sha256, "learned": learned})
    machine = model.machine()
    split = session.corpus(config["corpus"]).splits["test"]
    done = max(tables.get("returned", {}).get("novel", [-1])) + 1
    for novel in range(done, len(split.starts) - 1):
        piece = beginning(split, novel, teacher.tokens, config["reach"])
        rng = np.random.default_rng((config["seed"], novel))
        text, own, questions = planted(piece, teacher.tokens, rng=rng)
        found = read(machine, text, session, config["piece"])
        if found is None:
            return Outcome(tables, complete=False)
        state, last, losses = found
        for row in _by_position(losses, own[1:]):
            append(tables, "positions", {"novel": novel, **row})
        for one in questions:
            second, right = answered(machine, state, last, one)
            values = {"first": losses[one.stood - 1].mean().item(), "second": second}
            rounded = {key: round(value, 5) for key, value in values.items()}
            row = {"novel": novel, "kind": one.kind, "distance": one.distance}
            append(tables, "returned", {**row, **rounded, "right": round(right, 5)})
        session.save(tables)
    return Outcome(tables)


def _by_position(losses: Tensor, own: Tensor) -> list[dict[str, Any]]:
    """Mean loss of the novel's own tokens, between doublings of the position."""
    bounds = [0, *doublings(NEAREST, len(losses) - 1), len(losses)]
    return [
        {
            "begin": first + 1,
            "end": last,
            "loss": round(losses[first:last][own[first:last]].mean().item(), 5),
        }
        for first, last in pairwise(bounds)
    ]


EXPERIMENT = Experiment(
    "far_reading", "novels read far beyond a trained model's length, when no head may look back",
    TABLES, runs, perform,
)  # fmt: skip
