"""Shared by every test: one thread of torch a worker, and the same draws in every order."""

import os
import sys

# Threads that wait for each other while other workers have the cores make a second of a minute.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.parallel.pool import Pool

# A check of addresses that no notebook has, which jsonschema does without: its grammars take each
# worker more than a second to read.
sys.modules["rfc3987_syntax"] = None

BUSY = {
    "deadline": None,  # the machine may be busy; time is measured in experiments, not here
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("ci", **BUSY)
settings.register_profile("fast", max_examples=10, **BUSY)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def pool():
    """Worker processes on gloo, for all tests that need ranks; started by the first of them."""
    one = Pool()
    yield one
    one.close()


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One test of the built book first, all others of the browser last.

    The first has the book built on one core; the other core goes through what needs no book.
    """
    browsed = [item for item in items if item.get_closest_marker("browser")]
    others = [item for item in items if not item.get_closest_marker("browser")]
    builds = [item for item in browsed if "built_book" in item.fixturenames][:1]
    items[:] = builds + others + [item for item in browsed if item not in builds]
