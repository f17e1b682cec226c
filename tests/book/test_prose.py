"""Every guarded sentence stands in its chapter or caption, and the stored results bear it out."""

import pytest

from book import prose
from book.prose import __main__ as command
from experiments.harness.core import record

VERDICTS = [pytest.param(one, id=f"{one.chapter}: {one.sentence[:60]}") for one in prose.verdicts()]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_it_stands_where_it_is_read_and_holds(verdict):
    assert prose.source(verdict)
    assert not prose.is_contradicted(verdict)


def test_whoever_runs_an_experiment_again_is_told(monkeypatch, capsys):
    """And of what holds nothing is said."""
    monkeypatch.setattr(record, "load", lambda experiment=None: [])
    command.main()
    said = capsys.readouterr().out
    assert 'book/training.md, contradicted by results: "' in said
    assert 'book/figures/index/race.py, contradicted by results: "' in said
    # Published times and counted bytes need no stored results.
    silent = {one.chapter for one in prose.verdicts() if f'"{one.sentence}"' not in said}
    assert silent == {"kernels", "many-devices", "three-modes"}
