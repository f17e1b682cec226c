"""The catalogue of experiments: all modules of this folder."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from .harness.core.plan import Experiment

# Modules of the folder that are not experiments.
OTHERS = {"__main__", "catalogue", "convert", "harness", "priorities", "recipes"}


def find() -> dict[str, Experiment]:
    """`EXPERIMENT` of every module here, by name. Raises TypeError naming a module without one."""
    found = {}
    for module in iter_modules([str(Path(__file__).parent)]):
        if module.name in OTHERS:
            continue
        found_in = import_module(f".{module.name}", __package__)
        experiment = getattr(found_in, "EXPERIMENT", None)
        if not isinstance(experiment, Experiment) or experiment.name != module.name:
            raise TypeError(
                f"experiments/{module.name}.py: expected an EXPERIMENT named {module.name!r}"
            )
        found[module.name] = replace(experiment, text=found_in.__doc__ or experiment.about)
    return found


EXPERIMENTS = find()
