"""Runs that were never made, as the runner stores them, and what a page is told of runs."""

import json
import re

from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import record

DEVICE = {"kind": "cpu", "name": "A", "count": 2, "memory_bytes": 1}


def columns(names: str, rows) -> dict[str, list]:
    """A table of these rows."""
    return dict(zip(names.split(), map(list, zip(*rows, strict=True)), strict=True))


def made(experiment: str, name: str, config: dict, tables: dict, device: dict = DEVICE) -> dict:
    """A whole run."""
    return {
        "schema": record.SCHEMA,
        "experiment": experiment,
        "name": name,
        "path": f"results/{name}.json",
        "config": config,
        "complete": True,
        "provenance": {
            "commit": "0" * 40, "dirty": False, "command": "made up", "seconds": 1.0,
            "seed": config.get("seed", 0), "started": "2026-01-01T00:00:00+00:00",
            "device": device, "versions": {"torch": "2"},
        },
        "tables": tables,
    }  # fmt: skip


def asked(task, model, right, seed=0, test=None, ending="stopped", **config) -> dict:
    """A run of `made_up_tasks` that answered this share right in the end."""
    config = {
        "task": task, "model": model, "attention": model, "attention_options": {}, "n_head": 1,
        "seed": seed, "solved": 0.995, "learning_rate": 3e-3, "updates": 2400, **config,
    }  # fmt: skip
    tables = {
        "curve": {"update": [40], "loss": [1 - right], "accuracy": [right]},
        "end": {"updates": [40], "ending": [ending]},
        "test": test or {"length": [64], "accuracy": [right], "state": [8]},
    }
    return made("made_up_tasks", f"{model}-{seed}", config, tables)


def store_run(folder, run: dict) -> None:
    """Write a run as a record into a folder of results."""
    used = {column for table in run["tables"].values() for column in table}
    units = {one: unit for one, unit in EXPERIMENTS[run["experiment"]].units.items() if one in used}
    contents = {key: value for key, value in run.items() if key != "path"} | {"units": units}
    device = run["provenance"]["device"]
    record.write(record.path_of(folder, run["experiment"], device, run["name"]), contents)


def page_data(shown) -> dict:
    """The data that a page hands to its stage."""
    return json.loads(re.search(r">(.*)</script>", getattr(shown, "data", shown), re.DOTALL)[1])
