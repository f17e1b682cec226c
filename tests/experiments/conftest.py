"""A small made-up corpus in the place where prepared corpora lie."""

import numpy as np
import pytest

from experiments import __main__ as command
from experiments.catalogue import EXPERIMENTS
from experiments.harness.bench import errors
from experiments.harness.core import lease
from experiments.harness.learning.prepared import store


@pytest.fixture
def made_corpus(tmp_path, monkeypatch):
    """`novels`, already prepared: seeded noise with a rhythm a model can learn something of."""
    rng = np.random.default_rng(0)
    cache = tmp_path / "cache"
    documents = [
        (split, (rng.integers(0, 20, n) + 97 * (np.arange(n) % 2)).astype(np.uint8))
        for split, n in [("train", 5000), ("train", 3000), ("validation", 2000), ("test", 2000)]
    ]
    store(cache / "novels.npz", documents)
    monkeypatch.setenv("LSA_CACHE", str(cache))
    return cache


@pytest.fixture(autouse=True)
def _hurried(monkeypatch):
    """A point is timed for a fiftieth of the time: what is tested is that it is stored."""
    monkeypatch.setattr(
        "experiments.harness.bench.timing.ENOUGH_SECONDS", {"cpu": 0.02, "cuda": 0.02}
    )


@pytest.fixture
def forked(monkeypatch):
    """A process begins as a copy of this one, with what a test has replaced."""
    for module in (errors, lease):
        monkeypatch.setattr(module, "START", "fork")


@pytest.fixture
def two(monkeypatch):
    """A plan of two experiments, a run each."""
    few = {name: EXPERIMENTS[name] for name in ("kernel_errors", "taylor_error")}
    monkeypatch.setattr(command, "EXPERIMENTS", few)
