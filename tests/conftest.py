"""Shared by every test: one thread of torch a worker, and the same draws in every order."""

import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "book",
    deadline=None,  # the machine may be busy; time is measured in experiments, not here
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("book")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
