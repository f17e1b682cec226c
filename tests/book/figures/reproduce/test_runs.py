"""The list of stored runs: every experiment under what it says of itself."""

from book.figures.lib.tables import text
from book.figures.reproduce import runs
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import record


def test_every_stored_experiment_stands_under_its_own_words():
    shown = runs.stored_runs()._repr_markdown_()
    for name in {run["experiment"] for run in record.load()}:
        said = EXPERIMENTS[name].about
        heading = text(said[0].upper() + said[1:])
        assert f"### {heading}\n\n`python -m experiments run {name}`" in shown
