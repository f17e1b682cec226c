"""What the film is told of stored runs: both models or nothing, weights as digits, the far head."""

from book.figures.training import race_film
from tests.book.figures.made_up import columns, made, page_data, store_run

LOOKS = {0: "250 250 250 250", 5: "0 0 0 1000"}


def filmed(folder, model, tables):
    """Stores a training that never was."""
    name = model if "speed" in tables else f"{model}-4096-seed0"
    config = {
        "model": model, "context": 4096, "seed": 0,
        "attention_options": {"log_decay": [-0.17, 0.0]},
    }  # fmt: skip
    store_run(folder, made("race", name, config, tables))


def training(text):
    looks = [
        (update, 0, head, 3, "250 250 250 250" if head == 0 else weights)
        for update, weights in LOOKS.items()
        for head in (0, 1)
    ]
    return {
        "validation": {"update": [0, 4], "loss": [5.5, 2.0]},
        "samples": {
            "update": [0, 0, 5, 5],
            "kind": ["greedy", "sampled"] * 2,
            "text": ["", "", text, "b"],
        },
        "looks": columns("update layer head token weights", looks),
    }


def test_both_models_or_nothing(store):
    assert "No film" in repr(race_film.data())
    filmed(store, "softmax", training("x"))
    missing = race_film.data()
    assert not missing and "experiments run race" in repr(missing)
    filmed(store, "linear", training("</script><b>"))
    shown = race_film.data()
    assert shown.data.count("<") == 2  # a model's text ends no script
    film = page_data(shown)
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
    film = page_data(race_film.data())
    assert [model["seconds"] for model in film["models"]] == [0.5, 0.25]
