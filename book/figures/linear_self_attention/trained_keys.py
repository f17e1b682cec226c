"""Keys that small models have learned to write and read, for the stage `memory`."""

from __future__ import annotations

from dataclasses import asdict

from IPython.display import HTML

from ...explorable.markup import json_script
from ..lib.records import learned, provenance, weights_of
from ..lib.tables import Missing

MEMORIES = {"state": "linear", "cache": "softmax"}


def data() -> HTML | Missing:
    """JSON in a script element for the stage, or a note on what to run if nothing is stored.

    files: for each memory the file of its keys, which the page loads on demand. sources: where they
    come from.
    """
    by_model = {
        run["config"]["model"]: run
        for run in learned("task_examples")
        if run["config"]["task"] == "recall"
    }
    if not by_model.keys() >= set(MEMORIES.values()):
        return Missing("task_examples --only task=recall")
    runs = {memory: by_model[model] for memory, model in MEMORIES.items()}
    shown = {
        "files": {memory: run["name"] for memory, run in runs.items()},
        "sources": [asdict(source) for source in provenance([*runs.values()])],
    }
    files = " ".join(weights_of(run) for run in runs.values())
    return HTML(json_script(shown, id="trained-keys", data_files=files))
