"""Data of the stage `sampler`: models of the long race, and states of one of them.

The page gets the names of the files with weights and states, which it loads on demand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import torch
from IPython.display import HTML

from experiments.harness.core import record
from experiments.harness.learning.probes import PROMPT
from experiments.harness.learning.weights import unpack_weights
from lsa import LinearState
from lsa.cost import tick_cost
from lsa.gpt import GPT, GPTConfig, gpt_config

from ...explorable.markup import json_script
from ..lib.format import in_words, size
from ..lib.records import NotMeasuredError, Record, have, need, provenance, row, weights_of
from ..lib.tables import Missing
from ..training import long_race

MODELS = ("softmax", "window", "linear")
COUNTED = 4096  # letters between the two counts of a letter's multiply-adds


def data() -> HTML | Missing:
    """JSON in a script element for the stage, or a note on what to run if a model is missing.

    prompt. bytes: of the models' files that the page loads, in base64.
    models: each with name, file (its name there), slopes (log_decay of its heads) and, of a window,
    its letters: window and first.
    bills: {name: multiply-adds as `letter_cost` counts them}.
    state, ring: bytes of linear attention's state and of the window. row: of a letter in the cache.
    stations: states of a novel, each with its letters, its file and the end of the text read.
    sources: where all this comes from.
    """
    try:
        runs = [trained(model) for model in MODELS]
    except NotMeasuredError:
        return Missing("long_race --only seed=0,updates=17080", "No weights of the models yet")
    if not (read := stations()):
        return Missing("novel_states", "No states of the linear model yet")
    cache, ring, state = memory()
    files = [weights_of(run) for run in [*runs, *read]]
    shown = {
        "prompt": PROMPT.strip(),
        "bytes": sum(loaded_bytes(file) for file in files[: len(runs)]),
        "models": [loaded(run) for run in runs],
        "bills": {run["config"]["model"]: letter_cost(run["config"]) for run in runs},
        "state": state,
        "ring": ring,
        "row": cache,
        "stations": [
            {
                "letters": run["config"]["letters"],
                "file": run["name"],
                "text": row(run, "state")["text"],
            }
            for run in read
        ],
        "sources": [asdict(source) for source in provenance([*runs, *read])],
    }
    return HTML(json_script(shown, id="sampler-data", data_files=" ".join(files)))


def trained(model: str) -> Record:
    """The run whose weights are stored. Raises NotMeasuredError."""
    if not weights_of(run := long_race.of(model, whole=True)):
        raise NotMeasuredError(f"long_race: no weights of {model}")
    return run


def loaded(run: Record) -> dict[str, Any]:
    """A loadable model's data for the page: name, file, slopes of the heads, size of a window."""
    options = {**run["config"]["attention_options"]}
    slopes = options.pop("log_decay")
    return {"name": run["config"]["model"], "file": run["name"], "slopes": slopes, **options}


def loaded_bytes(file: str) -> int:
    """Size of a project file as a page loads it, in base64."""
    return -(-(record.ROOT / file).stat().st_size // 3) * 4


def stations() -> list[Record]:
    """The runs that read a novel with the page's linear model, fewest letters first."""
    runs = [run for run in have("novel_states") if run["config"].get("race") == "long_race"]
    return sorted(runs, key=lambda run: run["config"]["letters"])


def _shape(config: dict[str, Any]) -> GPTConfig:
    return gpt_config(
        config["scale"], vocab_size=256, n_positions=config["n_positions"],
        attention=config["attention"], attention_options=config["attention_options"],
        **config.get("shape", {}),
    )  # fmt: skip


def letter_cost(config: dict[str, Any]) -> tuple[int, int, int | None]:
    """Multiply-adds of the first letter, those that each earlier letter adds, and how many add.

    Of a window, those in it add; of others, all do: None.
    """
    shape, options = _shape(config), config["attention_options"]
    most = options["window"] + options["first"] - 1 if "window" in options else None
    first, later = (tick_cost(shape, t, itemsize=4).flops // 2 for t in (0, COUNTED))
    return first, (later - first) // (most or COUNTED), most


def memory() -> tuple[int, ...]:
    """Bytes of a letter in softmax's cache, of a window, and of the linear state.

    Raises NotMeasuredError.
    """
    return tuple(
        tick_cost(_shape(trained(model)["config"]), 0, itemsize=4).state for model in MODELS
    )


def numbers() -> dict[str, str]:
    """Numbers for the chapter: the writers."""

    def farthest() -> int:
        """Letters of the last station."""
        runs = need(stations(), "novel_states: nothing read")
        return runs[-1]["config"]["letters"]

    def level() -> str:
        """The letter at which the cache costs as much as the state."""
        (first, grows, _), (flat, *_) = (
            letter_cost(trained(model)["config"]) for model in ("softmax", "linear")
        )
        return f"{1 + -(-(flat - first) // grows)}"

    return in_words(
        writers_level=level,
        writers_state=lambda: size(memory()[2]),
        writers_row=lambda: size(memory()[0]),
        writers_farthest=lambda: f"{farthest():,}",
        writers_far_cache=lambda: size(farthest() * memory()[0]),
    )


def model(name: str) -> GPT:
    """A writer of the page, as an lsa model. Raises NotMeasuredError."""
    return model_of(trained(name))


def model_of(run: Record) -> GPT:
    """The model whose weights are stored beside a run."""
    gpt = GPT(_shape(run["config"]))
    packed = (record.ROOT / weights_of(run)).read_bytes()
    gpt.load_state_dict(unpack_weights(packed))
    return gpt.eval().requires_grad_(False)


def layers(state: Any) -> Iterator[LinearState]:
    """S and z of every layer of linear attention in a GPT's state, the first layer first."""
    if isinstance(state, LinearState):
        yield state
    elif isinstance(state, tuple):
        for part in state:
            yield from layers(part)


def with_layers(state: Any, changed: Iterator[LinearState]) -> Any:
    """A GPT's state with other sums in its layers."""
    if isinstance(state, LinearState):
        return next(changed)
    return (
        tuple(with_layers(part, changed) for part in state) if isinstance(state, tuple) else state
    )


def sums(state: Any) -> torch.Tensor:
    """S of every layer of linear attention in a GPT's state: [layers, B, H, K, V]."""
    return torch.stack([one.S for one in layers(state)])
