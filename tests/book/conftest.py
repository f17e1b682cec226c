"""Stores of results that a test fills itself."""

import pytest

from book.figures.lib import tasks
from experiments.harness.core import record


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty folder in the place of the book's results."""
    load = record.load
    monkeypatch.setattr(record, "load", lambda experiment=None: load(experiment, tmp_path))
    monkeypatch.setattr(
        "experiments.harness.bench.timing.ENOUGH_SECONDS", {"cpu": 0.02, "cuda": 0.02}
    )
    return tmp_path


@pytest.fixture
def put_tasks(monkeypatch):
    """Puts runs where the figures look for those of the made-up tasks."""
    return lambda runs: monkeypatch.setattr(tasks, "learned", lambda experiment: runs)
