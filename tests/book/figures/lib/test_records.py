"""Which results a figure shows: whole runs of one device, and of others further seeds alone."""

import importlib
import inspect
import pkgutil

import pytest

import book.figures
from book.explorable.figure import Explorable
from book.figures.lib import records
from book.figures.lib.tables import Missing
from book.figures.training import plateau
from experiments.harness.core import record

LOAD = record.load
GPU = {"kind": "cuda", "name": "Imagined GPU", "count": 1, "memory_bytes": 2**37}


def on(one, **device):
    """The record, as if it had been made elsewhere."""
    origin = {**one["provenance"], "device": {**one["provenance"]["device"], **device}}
    return {**one, "provenance": origin}


def also(monkeypatch, more):
    """`record.load` finds these too."""

    def load(experiment=None, *rest, **options):
        found = [one for one in more if experiment in (None, one["experiment"])]
        return LOAD(experiment, *rest, **options) + found

    monkeypatch.setattr(record, "load", load)


def figures():
    """Every function of the figures' modules that makes an Explorable without being told what."""
    for module in pkgutil.walk_packages(book.figures.__path__, "book.figures."):
        if module.name.endswith(".interpreted"):  # it needs a setting that others must not have
            continue
        for name, function in vars(importlib.import_module(module.name)).items():
            made = getattr(function, "__annotations__", {}).get("return")
            if "Explorable" not in str(made).split(" | ") or name.startswith("_"):
                continue
            # One that has to be told what it draws reads no records.
            told = inspect.signature(function).parameters.values()
            if all(argument.default is not argument.empty for argument in told):
                yield pytest.param(function, id=f"{module.name}.{name}")


def stopped(one):
    """The first few rows of a run, on a larger computer: what `run --budget 25` leaves."""
    tables = {
        name: {column: values[:3] for column, values in columns.items()}
        for name, columns in one["tables"].items()
    }
    larger = {"name": "Larger CPU", "memory_bytes": 2**40}
    return {**on(one, **larger), "complete": False, "tables": tables}


def test_one_stopped_run_displaces_no_whole_ones(monkeypatch):
    whole = LOAD("loss_curves")
    also(monkeypatch, [stopped(whole[0])])
    assert records.stored("loss_curves") == whole


def test_the_device_with_most_whole_runs_is_shown_not_the_one_with_most_memory(monkeypatch):
    whole = LOAD("loss_curves")
    also(monkeypatch, [on(whole[0], name="Larger CPU", memory_bytes=2**40)])
    assert records.stored("loss_curves") == whole


def test_stopped_runs_are_shown_while_there_are_no_others(monkeypatch):
    only = [stopped(LOAD("loss_curves")[0])]
    monkeypatch.setattr(record, "load", lambda experiment: only)
    assert records.stored("loss_curves") == only


def of_one_processor():
    """The runs of `plateau` that one processor made."""
    every = LOAD("plateau")
    name = every[0]["provenance"]["device"]["name"]
    return [one for one in every if one["provenance"]["device"]["name"] == name]


def instead(monkeypatch, found):
    """`record.load` finds these for `plateau`."""

    def load(experiment=None, *rest, **options):
        return found if experiment == "plateau" else LOAD(experiment, *rest, **options)

    monkeypatch.setattr(record, "load", load)


def renamed(one, seed):
    """The same run of another seed."""
    name = one["name"].replace(f"seed{one['config']['seed']}", f"seed{seed}")
    return {**one, "name": name, "config": {**one["config"], "seed": seed}}


def test_runs_that_one_processor_lacks_may_come_from_another(monkeypatch):
    whole = of_one_processor()
    elsewhere = [on(renamed(one, seed=7), name="Other CPU") for one in (whole[0], whole[-1])]
    elsewhere.append(on({**whole[0], "name": "new-seed0"}, name="Other CPU"))
    instead(monkeypatch, whole + elsewhere)
    assert records.stored("plateau") == whole
    by_name = {one["name"]: one for one in records.learned("plateau")}
    assert by_name == {one["name"]: one for one in whole + elsewhere}
    assert "Other CPU" in str(plateau.figure().provenance)


@pytest.mark.parametrize(
    ("change", "device"),
    [
        (dict, {"name": "Other CPU"}),  # the same seed
        (lambda one: {**renamed(one, seed=7), "complete": False}, {"name": "Other CPU"}),
    ],
)
def test_nothing_else_comes_from_another_processor(monkeypatch, change, device):
    whole = of_one_processor()
    instead(monkeypatch, [*whole, on(change(whole[0]), **device)])
    assert {one["name"] for one in records.learned("plateau")} == {one["name"] for one in whole}
    assert all(one in whole for one in records.learned("plateau"))


def test_a_gpu_takes_no_seeds_of_a_processor(monkeypatch):
    whole = of_one_processor()
    on_gpu = [on(one, **GPU) for one in whole]
    instead(monkeypatch, [*on_gpu, *whole, renamed(whole[0], seed=7)])
    learned = records.learned("plateau")
    assert len(learned) == len(on_gpu) and all(one in on_gpu for one in learned)


@pytest.mark.parametrize("figure", figures())
def test_every_figure_is_drawn_with_a_stopped_run_of_everything_beside(figure, monkeypatch):
    also(monkeypatch, [stopped(one) for one in LOAD()])
    assert "Larger CPU" not in str(vars(figure()))


@pytest.mark.parametrize("figure", figures())
def test_every_figure_is_drawn_with_the_results_of_a_gpu(figure, monkeypatch):
    also(monkeypatch, [on(one, **GPU) for one in LOAD()])
    assert isinstance(figure(), Explorable | Missing | None)
