"""Data of the stage `sampler`: two models of the race, whose weights are stored.

The page gets their names and the files of their weights, which it loads when a reader asks.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from IPython.display import HTML

from experiments.harness.core import record
from experiments.harness.learning.probes import PROMPT
from experiments.harness.learning.weights import WEIGHTS, unpack_weights
from lsa import LinearState
from lsa.cost import tick_cost
from lsa.gpt import GPT, GPTConfig, gpt_config

from ...explorable.markup import json_script
from ..lib.format import in_words
from ..lib.records import NotMeasuredError, Record, load, of_config, provenance
from ..lib.tables import Missing

MODELS = ("softmax", "linear")
CONTEXT = 4096  # that of the first page's figure
COUNTED = 4096  # letters between the two places at which a letter's multiply-adds are counted


def data(context: int = CONTEXT) -> HTML | Missing:
    """JSON in a script element, for the stage to read; what to run where a model is missing.

    prompt; layers, how many each model has; bytes, of the two files that the page loads, in base64;
    models, each with name, file (its name there) and slopes (log_decay of its heads); bills,
    {name: multiply-adds of the first letter and what each letter before adds}; sources, where the
    models come from.
    """
    try:
        runs = [_trained(model, context) for model in MODELS]
    except NotMeasuredError:
        return Missing("race --only seed=0", f"No weights of both models at {context:,} bytes yet")
    files = [_weights(run["path"]) for run in runs]
    shown = {
        "prompt": PROMPT.strip(),
        "layers": gpt_config(runs[0]["config"]["scale"]).n_layer,
        "bytes": sum(-(-(record.ROOT / file).stat().st_size // 3) * 4 for file in files),
        "models": [
            {
                "name": run["config"]["model"],
                "file": run["name"],
                "slopes": run["config"]["attention_options"]["log_decay"],
            }
            for run in runs
        ],
        "bills": {run["config"]["model"]: bill(run["config"]) for run in runs},
        "sources": [asdict(source) for source in provenance(runs)],
    }
    return HTML(json_script(shown, id="sampler-data", data_files=" ".join(files)))


def _trained(model: str, context: int) -> Record:
    """The run whose weights are stored. Raises NotMeasuredError."""
    kept = [
        run for run in load("race")
        if run["complete"] and (record.ROOT / _weights(run["path"])).is_file()
    ]  # fmt: skip
    return of_config(kept, model=model, context=context, seed=0)


def _weights(path: str) -> str:
    """The file beside a record that holds the weights."""
    return path.removesuffix(".json") + WEIGHTS


def _shape(config: dict[str, Any]) -> GPTConfig:
    return gpt_config(
        config["scale"], vocab_size=256, n_positions=config["n_positions"],
        attention=config["attention"], attention_options=config["attention_options"],
    )  # fmt: skip


def bill(config: dict[str, Any]) -> tuple[int, int]:
    """Multiply-adds of the first letter, and what each letter before one adds to it."""
    shape = _shape(config)
    first, later = (tick_cost(shape, t, itemsize=4).flops // 2 for t in (0, COUNTED))
    return first, (later - first) // COUNTED


def numbers(context: int = CONTEXT) -> dict[str, str]:
    """Numbers for the chapter: the two writers."""

    def run(model: str) -> Record:
        return _trained(model, context)

    def loss(model: str) -> str:
        return f"{run(model)['tables']['validation']['loss'][-1]:.2f}"

    def level() -> str:
        """The letter at which the cache costs as much as the state."""
        (first, grows), (flat, _) = (bill(run(model)["config"]) for model in MODELS)
        return f"{1 + -(-(flat - first) // grows)}"

    return in_words(
        writers_softmax=lambda: loss("softmax"),
        writers_linear=lambda: loss("linear"),
        writers_updates=lambda: f"{run('linear')['config']['updates']:,}",
        writers_context=lambda: f"{run('linear')['config']['context']:,}",
        writers_level=level,
    )


def model(name: str, context: int = CONTEXT) -> GPT:
    """A writer of the page, as a model of lsa. Raises NotMeasuredError."""
    run = _trained(name, context)
    found = GPT(_shape(run["config"]))
    packed = (record.ROOT / _weights(run["path"])).read_bytes()
    found.load_state_dict(unpack_weights(packed))
    return found.eval().requires_grad_(False)


def sums(state: Any) -> torch.Tensor:
    """S of every layer of linear attention in a GPT's state: [layers, H, K, V], of one text."""
    found: list[torch.Tensor] = []

    def look(part: Any) -> None:
        if isinstance(part, LinearState):
            found.append(part.S[0])
        elif isinstance(part, tuple):
            for one in part:
                look(one)

    look(state)
    return torch.stack(found)
