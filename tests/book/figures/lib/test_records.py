"""Which results a figure shows: whole runs of one device, and of others further seeds alone."""

import importlib
import inspect
import pkgutil
from copy import deepcopy
from functools import cache

import pytest

import book.figures
from book.figures.lib import format, records
from book.figures.training import loss_curves, plateau
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


def modules():
    """The figures' modules, but for one with a setting of its own and one that reads every run."""
    for module in pkgutil.walk_packages(book.figures.__path__, "book.figures."):
        if not module.name.endswith((".interpreted", ".preloaded")):
            yield importlib.import_module(module.name)


def draws(name, function):
    """Whether a function of a figure's module makes an Explorable without being told what."""
    made = getattr(function, "__annotations__", {}).get("return")
    if "Explorable" not in str(made).split(" | ") or name.startswith("_"):
        return False
    # One that has to be told what it draws reads no records.
    told = inspect.signature(function).parameters.values()
    return all(argument.default is not argument.empty for argument in told)


def figures():
    for module in modules():
        for name, function in vars(module).items():
            if draws(name, function):
                yield pytest.param(function, id=f"{module.__name__}.{name}")


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


def test_of_two_devices_with_as_many_runs_the_newer_is_shown(monkeypatch):
    """A name that sorts last says nothing of a measurement."""
    older = [
        {**one, "provenance": {**one["provenance"], "started": "2000-01-01T00:00:00+00:00"}}
        for one in (on(one, name="Z") for one in LOAD("cpu_speed"))
    ]
    for found in (LOAD("cpu_speed") + older, older + LOAD("cpu_speed")):
        monkeypatch.setattr(record, "load", lambda experiment, found=found: found)
        assert records.stored("cpu_speed") == LOAD("cpu_speed")


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
    return {
        **one,
        "name": name,
        "config": {**one["config"], "seed": seed},
        "provenance": {**one["provenance"], "seed": seed},
    }


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


def test_a_gpus_first_runs_are_drawn(monkeypatch):
    first = [
        on({
            **one, "name": one["name"].replace("nano", "124M"),
            "config": {**one["config"], "scale": "124M"},
        }, **GPU)
        for one in LOAD("loss_curves") if one["config"]["context"] == 4096
    ]  # fmt: skip
    faded = [
        {
            **one,
            "name": f"{one['name']}-fades",
            "config": {**one["config"], "attention_options": {}},
        }
        for one in first
    ]
    also(monkeypatch, first + faded)
    assert records.stored("loss_curves") == first + faded
    assert records.stored("loss_curves", context=[3]) == first + faded
    drawn = {curve.keys["scale"] for curve in loss_curves.figure().curves}
    assert drawn == {"124M", "124M, half of its heads fade"}


@cache
def stopped_beside_all():
    return [stopped(one) for one in LOAD()]


@pytest.mark.slow
@pytest.mark.parametrize("figure", figures())
def test_every_figure_is_drawn_with_a_stopped_run_of_everything_beside(figure, monkeypatch):
    also(monkeypatch, stopped_beside_all())
    assert "Larger CPU" not in str(vars(figure()))


def test_a_record_that_is_not_as_declared_is_named_before_a_figure_stumbles(monkeypatch):
    """Signed again, such a record passes for whole: its digest says only that nobody slipped."""
    whole, changed = LOAD("loss_curves"), deepcopy(LOAD("loss_curves")[0])
    del changed["tables"]["train"]["seconds"]
    monkeypatch.setattr(record, "load", lambda experiment=None: [changed, *whole[1:]])
    with pytest.raises(record.RecordError, match=f"^{changed['path']}: tables.train"):
        loss_curves.figure()


def test_a_resumed_run_names_all_its_commits():
    one = LOAD("loss_curves")[0]
    started = {"dirty": False, "started": one["provenance"]["started"], "seconds": 1.0}
    legs = [{**started, "commit": sha * 40} for sha in "aab"]
    origin = {**one["provenance"], "commit": "b" * 40, "legs": legs}
    (found,) = records.provenance([{**one, "provenance": origin}])
    assert found.commit == "aaaaaaa, bbbbbbb"
    assert found.command == "python -m experiments run loss_curves"
    assert (found.date, found.href) == (origin["started"][:10], f"../{one['path']}")


@pytest.mark.slow
def test_no_device_writes_markdown(monkeypatch):
    """Its name stands in sentences too, where `say` refuses what a page would show as signs."""
    odd = [on(one, name="A `fast` *CPU*") for one in LOAD()]
    monkeypatch.setattr(
        record, "load", lambda name=None: [one for one in odd if name in (None, one["experiment"])]
    )
    monkeypatch.setattr("myst_nb.glue", lambda name, value, display: None)
    for module in modules():
        for name, function in vars(module).items():
            if name in ("numbers", "front_numbers") and not inspect.signature(function).parameters:
                format.say(**function())
    assert {records.device_name(one)[:12] for one in records.load()} == {"A ˋfastˋ ∗CP"}
