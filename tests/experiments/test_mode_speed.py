"""Mode speed: its three tables."""

from experiments import mode_speed
from tests.experiments.command import bare_session


def test_a_run_measures_the_machine_the_modes_and_the_chunks():
    (run,) = mode_speed.runs("cpu", smoke=True)
    outcome = mode_speed.perform(run.config, bare_session())
    found = outcome.tables
    assert outcome.complete and list(found) == ["limits", "rows", "chunks"]
    for column in ("copy", "matmul", "call"):
        (value,) = found["limits"][column]
        assert value > 0
    assert found["limits"]["call"][0] < 1e-3
    assert set(found["rows"]["mode"]) == set(mode_speed.IMPLEMENTATIONS)
    chunks = found["chunks"]
    assert chunks["chunk_size"] == run.config["chunk_sizes"] * 2
    assert {"seconds", "low", "high", "repeats"} <= set(chunks)
    assert all(low <= high for low, high in zip(chunks["low"], chunks["high"], strict=True))
