"""Runs that teach students and measure them while they learn; a stopped run can continue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from ..core import checkpoint
from ..core.plan import Outcome, Session
from ..core.tables import append, table
from .distilling import Distillation
from .returning import PAIRS, SCORES, Returning, passages, recall_in_text, scores, unseen

SAVE_EVERY = 120.0  # seconds between two checkpoints; work since the last one may be lost
SAVE_SHARE = 10  # ... or this many times the last checkpoint's time, if that is longer
SAVE_AT_MOST = 240.0  # ... but at most this
MARK = 51_200  # tokens between two measurements
BASE: dict[str, Any] = {
    "model": "SmolLM2-135M-Instruct",
    "corpus": "novels",
    "seed": 0,
    "order": "gradient",
    "texts": 2,
    "length": 512,
    "feature_tokens": 40_960,
    "feature_rate": 1e-2,
    "mix_rate": 1e-3,
    "learning_rate": 3e-4,
    "warmup_updates": 20,
    "measure_every": MARK,
    "asked": [["passages", 256, 32]],
    "keeps_end": False,
    "goes_on": "",
}
UNSEEN = ["unseen", 256, 32]  # a measurement that tells recall from gain
SMOKE = {"model": "tiny", "texts": 2, "length": 200, "measure_every": 400}
ARM: dict[str, Any] = {"arm": ("name", "which student: how its heads attend")}
TOKENS: dict[str, Any] = {
    "tokens": ("tokens", "that it was trained on through the whole model before")
}
MEASURED: dict[str, Any] = {
    **ARM,
    **TOKENS,
    "kind": (
        "name",
        "what comes again: `passages` or `lists`; `unseen`: the passages without their copy",
    ),
    "distance": ("tokens", "between both comings"),
    "pairs": ("number", "names in a list; 0 of passages"),
    **SCORES,
}
TABLES = {
    "weights": table(sha256=("name", "of the teacher's file")),
    "features": table(
        optional="empty where no arm has features to learn",
        **ARM,
        update=("updates", "1, 2, 3, …"),
        missed=("share", "squared error of the heads' outputs over their square; a mean"),
    ),
    "train": table(
        optional="empty where nothing is trained",
        **ARM,
        **TOKENS,
        divergence=("nats/token", "KL(teacher, student) on the update's texts, before the step"),
    ),
    "measured": table(**MEASURED),
}


class Asked(NamedTuple):
    """A measurement: its kind, distance, number of texts, and number of names in a list, if any."""

    kind: str
    distance: int
    texts: int
    pairs: int = 0


def distill_through(one: Distillation, session: Session) -> Outcome:
    """Teach to the end of the plan or of the budget, from a checkpoint if there is one.

    Besides the keys of a `Distillation`, its configuration has:
    measure_every: tokens between measurements, a multiple of an update's.
    asked, last: lists of `Asked`, the measurements every time, and those at the end only.
    keeps_end: whether the students are stored for another run.
    goes_on: the run whose students it starts from. If they are not stored, the run starts from the
        beginning, with the same result.
    """
    _resume(one, session)
    due = time.monotonic() + SAVE_EVERY
    # A signal takes effect at the end of an update, or of a text.
    with session.stop.deferred():
        for work in _work(one):
            if session.out_of_time():
                _save(one, session, session.checkpoint)
                return Outcome(one.tables, complete=False)
            if time.monotonic() >= due:
                due = _save(one, session, session.checkpoint)
            work()
            session.save(one.tables)
            session.show(max(one.tokens, 0), one.config["tokens"], _note(one))
    if one.config["keeps_end"]:
        _save(one, session, _end(session.checkpoint.parent, session.checkpoint.stem))
    return Outcome(one.tables)


def _work(one: Distillation) -> Iterator[Callable[[], None]]:
    """The next steps, each an update or the measurement of one text."""
    config = one.config
    while True:
        ended = one.tokens >= config["tokens"]
        if one.tokens >= 0 and (ended or one.tokens % config["measure_every"] == 0):
            yield from _measurements(one, config["asked"] + (config["last"] if ended else []))
        if ended:
            return
        yield one.update


def _measurements(one: Distillation, asked: Sequence[Sequence[Any]]) -> Iterator[Any]:
    """Measurements that are not in the tables yet; all arms read a text before the next text."""
    found = one.tables.get("measured", {})
    names = ("arm", "tokens", "kind", "distance", "pairs", "text")
    have = {*zip(*(found[name] for name in names), strict=True)} if found else set()
    for what in (Asked(*each) for each in asked):
        for i in range(what.texts):
            for arm in one.students:
                if (arm, one.tokens, what.kind, what.distance, what.pairs, i) not in have:
                    yield partial(_measure, one, arm, what, i)


def _measure(one: Distillation, arm: str, asked: Asked, i: int) -> None:
    model = one.students[arm].model
    row = {"arm": arm, "tokens": one.tokens, "kind": asked.kind, "distance": asked.distance}
    found = scores(model, _texts(one, asked)[i])
    append(one.tables, "measured", {**row, "pairs": asked.pairs, "text": i, **found})


@cache
def _texts(one: Distillation, asked: Asked) -> list[Returning]:
    """Texts of the test novels, which were used neither for teaching nor for ranking."""
    split, tokens = one.splits["test"], one.trained.tokens
    many = {"distance": asked.distance, "texts": asked.texts}
    if asked.kind != "lists":
        return {"passages": passages, "unseen": unseen}[asked.kind](split, tokens, **many)
    return recall_in_text(split, tokens, **many, seed=0, pairs=asked.pairs or PAIRS)


def _note(one: Distillation) -> str:
    if one.tokens <= 0:
        return "features"
    return f"divergence {one.tables['train']['divergence'][-1]:.3f}"


def _end(folder: Path, name: str) -> Path:
    """Path of a run's students when it has ended."""
    return folder / f"{name}.end.pt"


def _resume(one: Distillation, session: Session) -> None:
    """Continue from the run's checkpoint or another run's end; an unusable file is set aside."""
    path, before = session.checkpoint, one.config["goes_on"]
    besides: tuple[str, ...] = ()
    if not path.exists():
        path, besides = _end(path.parent, before), ("tokens", "goes_on", "keeps_end")
    if not path.exists():
        return
    with checkpoint.reading(session, path):
        session.earlier[:] = one.resume(path, besides)


def _save(one: Distillation, session: Session, path: Path) -> float:
    """Write a checkpoint, or warn if there is no space; returns the time of the next one."""
    began = time.monotonic()
    with checkpoint.storing(session, path):
        one.save(path, [*session.earlier, session.leg()])
    ended = time.monotonic()
    return ended + min(max(SAVE_EVERY, SAVE_SHARE * (ended - began)), SAVE_AT_MOST)
