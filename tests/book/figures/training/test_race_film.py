"""What the film is told of stored runs: both models or nothing, weights as digits, the far head."""

import json
import re

from book.figures.training import race_film
from experiments.harness.core import record

LOOKS = {0: "250 250 250 250", 5: "0 0 0 1000"}


def filmed(folder, model, tables):
    """A record as the runner would have written it, of a training that never was."""
    device = {"kind": "cpu", "name": "a cpu", "count": 2, "memory_bytes": 1}
    name = model if "speed" in tables else f"{model}-4096-seed0"
    contents = {
        "schema": record.SCHEMA,
        "experiment": "race",
        "name": name,
        "config": {
            "model": model, "context": 4096, "seed": 0,
            "attention_options": {"log_decay": [-0.17, 0.0]},
        },
        "complete": True,
        "provenance": {
            "commit": "0" * 40, "dirty": False, "command": "made up", "seed": 0, "seconds": 1.0,
            "started": "2026-01-01T00:00:00+00:00", "device": device, "versions": {"torch": "2"},
        },
        "units": {
            "update": "updates", "loss": "nats/token", "kind": "name", "text": "text",
            "layer": "number", "head": "number", "token": "number", "weights": "thousandths",
            "model": "name", "seconds": "s", "low": "s", "high": "s", "repeats": "updates",
        },
        "tables": tables,
    }  # fmt: skip
    used = {column for table in tables.values() for column in table}
    contents["units"] = {name: unit for name, unit in contents["units"].items() if name in used}
    record.write(record.path_of(folder, "race", device, name), contents)


def training(text):
    looks = [
        (update, 0, head, 3, "250 250 250 250" if head == 0 else weights)
        for update, weights in LOOKS.items()
        for head in (0, 1)
    ]
    columns = ("update", "layer", "head", "token", "weights")
    return {
        "validation": {"update": [0, 4], "loss": [5.5, 2.0]},
        "samples": {
            "update": [0, 0, 5, 5],
            "kind": ["greedy", "sampled"] * 2,
            "text": ["", "", text, "b"],
        },
        "looks": dict(zip(columns, map(list, zip(*looks, strict=True)), strict=True)),
    }


def test_both_models_or_nothing(store):
    assert "No film" in repr(race_film.data())
    filmed(store, "softmax", training("x"))
    missing = race_film.data()
    assert not missing and "experiments run race" in repr(missing)
    filmed(store, "linear", training("</script><b>"))
    html = race_film.data().data
    assert html.count("<") == 2  # a model's text ends no script
    film = json.loads(re.search(r">(.*)<", html, re.DOTALL)[1])
    softmax, linear = film["models"]
    assert (softmax["name"], linear["name"]) == ("softmax", "linear")
    assert linear["samples"]["greedy"] == ["", "</script><b>"]
    assert linear["updates"] == [0, 5] and linear["loss"] == [[0, 5.5], [4, 2.0]]
    assert film["heads"] == [[0, 0, True], [0, 1, False]] and film["shown"] == 1
    assert linear["maps"] == [["iiii", "iiii"], ["iiii", "000z"]]
    assert linear["peaks"] == [[25.0, 25.0], [25.0, 100.0]]
    assert linear["seconds"] is None


def test_minutes_come_from_the_speeds_measured_apart(store):
    filmed(store, "softmax", training("x"))
    filmed(store, "linear", training("y"))
    speeds = {"seconds": [0.5, 0.25], "low": [0.4, 0.2], "high": [0.6, 0.3], "repeats": [9, 9]}
    filmed(store, "all", {"speed": {"model": ["softmax", "linear"], **speeds}})
    film = json.loads(re.search(r">(.*)<", race_film.data().data, re.DOTALL)[1])
    assert [model["seconds"] for model in film["models"]] == [0.5, 0.25]
