"""Every guarded sentence stands in its chapter, and the stored results bear it out."""

from pathlib import Path

import pytest

from book import prose
from book.prose import __main__ as command
from experiments.harness.core import record

BOOK = Path(prose.__file__).parents[1]
VERDICTS = [pytest.param(one, id=f"{one.chapter}: {one.sentence[:60]}") for one in prose.verdicts()]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_it_stands_in_its_chapter_and_holds(verdict):
    chapter = (BOOK / f"{verdict.chapter}.md").read_text(encoding="utf-8")
    assert verdict.sentence in " ".join(chapter.split())
    assert not prose.is_contradicted(verdict)


def test_whoever_runs_an_experiment_again_is_told(monkeypatch, capsys):
    """And of what holds nothing is said."""
    monkeypatch.setattr(record, "load", lambda experiment=None: [])
    command.main()
    said = capsys.readouterr().out
    assert 'book/training.md, contradicted by results: "' in said
    # Published times and counted bytes need no stored results.
    silent = {one.chapter for one in prose.verdicts() if f'"{one.sentence}"' not in said}
    assert silent == {"kernels", "many-devices", "three-modes"}
