"""Runs that a figure compares differ in what it compares, and in nothing else."""

import re

import pytest

from experiments import copying_curriculum, long_race, race, scaling, variants
from experiments.harness.learning.shapes import OPTIONS

ATTENTION = {"model", "attention", "attention_options", "seed"}
# The runs of a plan that are compared, how many they are, and the keys in which they differ.
COMPARED = {
    "copying curriculum": (
        copying_curriculum,
        39,
        ATTENTION | {"returns", "learning_rate", "meets", "slower"},
    ),
    "long race": (
        long_race,
        17,
        ATTENTION | {"updates", "cooldown_updates", "asked", "learning_rate"},
    ),
    "scaling": (scaling, 6 * len(scaling.SIZES), {"size", "shape", "attention", "seed"}),
    "variants": (variants, None, {"attention", "seed", *OPTIONS}),
    **{
        f"race at {context}": (
            race,
            len(race.MODELS) * len(race.SEEDS),
            ATTENTION | {"film", "window"},
        )
        for context in race.UPDATES
    },
}


@pytest.mark.parametrize("name", COMPARED)
def test_runs_differ_in_what_is_compared_alone(name):
    experiment, count, varied = COMPARED[name]
    found = [
        run.config
        for run in experiment.runs("cpu", smoke=False)
        if run.name != "speed"
        and not re.search("planted|longer", run.name)
        and not {"rounds", "change"} & run.config.keys()
    ]
    if experiment is race:
        found = [config for config in found if config["context"] == int(name.split()[-1])]
    assert len(found) == (count or len(found)) > 1
    same = [{k: v for k, v in config.items() if k not in varied} for config in found]
    assert all(one == same[0] for one in same)
