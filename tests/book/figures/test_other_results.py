"""Results of a GPU, and runs that were stopped: every figure and number copes with them."""

import importlib
import inspect
import pickle
import pkgutil
import re

import pytest

import book.figures
from book.explorable.figure import Explorable
from book.explorable.still import still
from book.figures.training import loss_curves
from experiments.harness.core import record
from tests.book.figures.lib.test_records import draws

pytestmark = pytest.mark.slow
NOT_FIGURES = {"interpreted", "readme_picture"}
MODULES = [
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(book.figures.__path__, "book.figures.")
    if not found.ispkg
    and ".lib." not in found.name
    and found.name.rpartition(".")[2] not in NOT_FIGURES
]
SHOWN = (
    "figure", "rooflines", "published", "table", "step_table", "numbers",
    "front_numbers", "stored_runs", "by_experiment", "versions", "data", "time_table",
    "by_position",
    "by_context", "same_time_table", "far_head_table",
    "scores", "update_times", "grid",
    "heads_table", "state_table", "lead_table", "copies_table",
)  # fmt: skip
# Drawn by formula: there is nothing to measure.
BY_FORMULA = {
    "design_bytes.figure", "exchanges.figure", "kernel_speed.published", "machine_costs.figure",
    "taylor_sums.figure",
}  # fmt: skip
GPU = {"kind": "cuda", "name": "Imagined", "count": 1, "memory_bytes": 2**37}


def everything():
    """All that a page can show, by module and function."""
    for module in MODULES:
        for name, make in inspect.getmembers(module, inspect.isfunction):
            if name in SHOWN or draws(name, make):
                yield f"{module.__name__.removeprefix('book.figures.')}.{name}", make


def first_rows(run, count):
    """The run as a budget would have stopped it: the first rows of each table."""
    tables = {
        name: {column: values[:count] for column, values in table.items()}
        for name, table in run["tables"].items()
    }
    if validation := tables.get("validation"):
        made = sum(update <= count for update in validation["update"])
        tables["validation"] = {column: values[:made] for column, values in validation.items()}
    return {**run, "complete": False, "tables": tables}


def on_gpu(run):
    config = run["config"] | ({"dtype": "bfloat16"} if "dtype" in run["config"] else {})
    return {**run, "config": config, "provenance": {**run["provenance"], "device": GPU}}


def of_scale(run, scale):
    if "scale" not in run["config"]:
        return run
    # A name of the plan, and weights, belong to the plan's scale.
    config = {**run["config"], "scale": scale}
    kept = {key: value for key, value in run.items() if key != "weights"}
    return {**kept, "config": config, "name": f"{scale}-{run['name']}"}


OTHERS = {
    "a GPU's, as many": lambda run: [run, on_gpu(run)],
    "a GPU's, of another scale": lambda run: [run, on_gpu(of_scale(run, "355M"))],
    "only one row": lambda run: [first_rows(run, 1)],
}
# Their still pictures are drawn too: with the fewest points that there can be, and the most curves.
PICTURED = ("only one row", "a GPU's, of another scale")


@pytest.fixture
def stored_now(monkeypatch):
    """Makes these runs the stored ones."""

    def put(runs):
        of = {None: runs}
        for run in runs:
            of.setdefault(run["experiment"], []).append(run)
        monkeypatch.setattr(record, "load", lambda name=None: [*of.get(name, ())])

    return put


@pytest.fixture
def loaded():
    return record.load()


@pytest.mark.parametrize("others", OTHERS)
def test_every_figure_and_number_copes(others, loaded, stored_now):
    """And leaves the records as they are, which `record.load` hands to all."""
    runs = [made for run in loaded for made in OTHERS[others](run)]
    stored_now(runs)
    before = pickle.dumps(runs)
    for name, make in everything():
        shown = make()
        if isinstance(shown, Explorable):
            assert shown.curves, name
            assert shown.provenance or name.partition(".")[2] in BY_FORMULA, name
            if others in PICTURED:
                still(shown)
        elif hasattr(shown, "_repr_markdown_"):
            assert "None" not in shown._repr_markdown_(), name
        elif hasattr(shown, "_repr_html_"):
            assert shown._repr_html_(), name
        else:
            assert isinstance(shown, dict | str), name
    assert pickle.dumps(runs) == before


def test_what_is_not_stored_says_how_to_measure_it(store, monkeypatch):
    load, asked = record.load, set()
    monkeypatch.setattr(record, "load", lambda name=None: asked.add(name) or load(name))
    for name, make in everything():
        asked.clear()
        shown = make()
        if isinstance(shown, Explorable):
            assert name.partition(".")[2] in BY_FORMULA, name
        elif not shown and name != "three_modes.browser_speed.data":  # it has a button for that
            (command,) = re.findall(r" yet: python -m experiments run (\w+)", repr(shown))
            assert command in asked, name


def test_words_of_the_first_page_keep_the_runs_they_were_written_for(loaded, stored_now):
    stored_now(loaded)
    before = loss_curves.numbers()
    again = [on_gpu(run) for run in loaded if run["config"].get("context") == 4096]
    stored_now(loaded + again)
    assert loss_curves.numbers() == before
