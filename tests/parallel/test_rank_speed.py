"""The experiment that times a sequence over processes: its calls, its bytes, and a lost process."""

import pytest

from experiments import rank_speed
from lsa.cost import key_exchange, state_exchange
from tests.parallel import tasks
from tests.parallel.pool import server

pytestmark = pytest.mark.slow


@pytest.fixture
def config(monkeypatch):
    monkeypatch.setattr(rank_speed, "get_context", lambda _: server())
    (spread,) = rank_speed.runs("cpu", True)
    return spread.config


@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_a_call_is_timed_by_the_last_rank(pool, config, attention):
    found = pool.run(2, tasks.timed, attention, 32, config)
    assert found[0] == found[1]  # all tell the same seconds, and stop at the same call
    assert len(found[0]) == 5 and all(seconds > 0 for seconds in found[0])


@pytest.mark.slow
def test_rows_hold_the_bytes_of_the_formulas(config):
    rows = rank_speed.measured(2, config, 0.0)
    sizes = {"H": config["heads"], "K": config["width"], "V": config["width"]}
    for row in rows:
        if row["attention"] == "linear":
            assert row["received"] == 2 * state_exchange(2, **sizes)
        else:  # and one number, of how many tokens the other has
            assert row["received"] == 2 * key_exchange(2, 32, itemsize=4, **sizes) + 8
    assert rank_speed.EXPERIMENT.tables["rows"].columns.keys() == rows[0].keys()


@pytest.mark.slow
def test_one_process_runs_the_package_alone_too(config):
    assert [row["received"] for row in rank_speed.measured(1, config)] == [0, 0, 0]


@pytest.mark.slow
def test_a_process_that_breaks_off_ends_the_others(config):
    with pytest.raises(OSError, match="rank . of 2 broke off"):
        rank_speed.measured(2, {**config, "linear": [None]}, 0.0)
