"""The list of stored runs: experiments beside what they say of themselves, runs by their files."""

from book.figures.lib.tables import text
from book.figures.reproduce import runs
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import record


def test_every_stored_experiment_stands_beside_its_own_words():
    shown = runs.by_experiment()._repr_markdown_()
    for name in {run["experiment"] for run in record.load()}:
        said = EXPERIMENTS[name].about
        assert f"| `{name}` | {text(said[0].upper() + said[1:])} |" in shown


def test_every_stored_run_leads_to_its_file():
    shown = runs.stored_runs()._repr_markdown_()
    for run in record.load():
        assert f'href="../{run["path"]}"' in shown
