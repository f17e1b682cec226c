"""A store of results that a test fills itself."""

import pytest

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
