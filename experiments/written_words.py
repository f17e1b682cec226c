"""How many of the words that trained models write are words of the novels they have read.

Each model continues the same places of the test novels, which none was trained or selected on: by
the most likely letter, and drawn at a temperature of 0.8. A word is known if it occurs anywhere in
the training novels. Each continuation's last word is left out, since it may be cut off. The
novels' own continuations of these places are measured alike. A text repeats itself if a run of
eight words occurs in it twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch

from lsa.sampling import sample

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.learning.batches import held_out_tokens
from .harness.learning.prepared import Split
from .recipes import NEAR, model_of

FAR = {"log_decay": [NEAR, 0.0]}
MODELS: dict[str, dict[str, Any]] = {
    "softmax": {"attention": "softmax", "attention_options": FAR},
    "window": {"attention": "window", "attention_options": {**FAR, "window": 128, "first": 1}},
    "linear": {"attention": "linear", "attention_options": FAR},
}
RACES: dict[str, dict[str, Any]] = {
    "race": {"context": 4096},
    "long_race": {"context": 1024, "shape": {"n_layer": 6, "d_model": 192}},
}
BASE: dict[str, Any] = {
    "scale": "nano",
    "corpus": "novels",
    "split": "test",
    "places": 100,
    "prompt": 64,  # letters at least; it ends after a word
    "letters": 400,
    "temperature": 0.8,
    "run": 8,
    "seed": 0,
}
SMOKE = {"places": 5, "prompt": 8, "letters": 20, "run": 2}
TABLES = {
    "weights": table(sha256=("name", "of the file of weights that was read")),
    "texts": table(
        writer=("name", "`greedy` or `sampled`: the model; `novel`: what stands there"),
        place=("number", "which place, from 0; novels take turns"),
        words=("count", "words written, without the last"),
        known=("count", "of these, words that occur in the training novels"),
        repeats=("count", "1 if a run of `config.run` words occurs twice, else 0"),
    ),
}
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")


def runs(kind: str, smoke: bool) -> list[Run]:
    """The race's writers, and those of the long race that have read all its text."""
    if smoke:
        return [_run("race", "linear", {"context": 64, **SMOKE})]
    return [_run(race, model, {}) for race in RACES for model in MODELS]


def _run(race: str, model: str, rest: dict[str, Any]) -> Run:
    config = {**BASE, "race": race, **RACES[race], "model": model, **MODELS[model], **rest}
    text = config["context"] if race == "race" else "all"
    config["trained"] = f"{model}-{text}-seed{config['seed']}"
    priority = 330 if race == "race" else 730  # after the models are trained
    return Run("written_words", f"{race.replace('_', '-')}-{model}", config, priority)


def words(text: bytes) -> list[str]:
    """The words of a text, in lower case. An apostrophe inside a word is part of it."""
    return WORD.findall(text.decode(errors="replace").replace("’", "'").lower())


def vocabulary(split: Split) -> set[str]:
    """All words of a split."""
    ends = zip(split.starts[:-1], split.starts[1:], strict=True)
    return {word for start, end in ends for word in words(split.tokens[start:end].tobytes())}


def repeats(found: list[str], run: int) -> bool:
    """Whether a run of so many words occurs twice."""
    every = [tuple(found[i : i + run]) for i in range(len(found) - run + 1)]
    return len(set(every)) < len(every)


def places(split: Split, config: dict[str, Any]) -> list[bytes]:
    """Texts of a split, each at least as long as a prompt and its continuation."""
    span = 2 * config["prompt"] + config["letters"]
    inputs, _ = held_out_tokens(split, span=span, context=span, spans=config["places"])
    return [bytes(row.tolist()) for row in inputs]


def halves(text: bytes, config: dict[str, Any]) -> tuple[bytes, bytes]:
    """A prompt that ends with a space, and what follows; a text without one is cut anyhow."""
    at = text.find(b" ", config["prompt"] - 1, 2 * config["prompt"]) + 1 or config["prompt"]
    return text[at - config["prompt"] : at], text[at : at + config["letters"]]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    model, sha256 = model_of(config, session.places, session.device)
    splits = session.corpus(config["corpus"]).splits
    known = vocabulary(splits["train"])
    texts = [halves(text, config) for text in places(splits[config["split"]], config)]
    prompts = torch.tensor([[*prompt] for prompt, _ in texts], device=session.device)
    written: dict[str, Iterable[bytes]] = {"novel": [own for _, own in texts]}
    for writer, temperature in (("greedy", 0.0), ("sampled", config["temperature"])):
        letters = sample(
            model.machine(), prompts, max_tokens=config["letters"], temperature=temperature,
            seed=config["seed"],
        )  # fmt: skip
        written[writer] = [bytes(row) for row in torch.stack([*letters], 1).tolist()]
        session.show(len(written) - 1, 2, "ways of writing")
    tables: Tables = {}
    append(tables, "weights", {"sha256": sha256})
    for writer, each in written.items():
        for place, text in enumerate(each):
            whole = words(text)[:-1]
            row = {
                "writer": writer,
                "place": place,
                "words": len(whole),
                "known": sum(word in known for word in whole),
                "repeats": int(repeats(whole, config["run"])),
            }
            append(tables, "texts", row)
    return Outcome(tables)


EXPERIMENT = Experiment(
    "written_words", "how many of the words that models write are known", TABLES, runs, perform
)
