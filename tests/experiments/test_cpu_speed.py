"""CPU speed: every body takes its turn, and what ran before runs again."""

import pytest
import torch

from experiments import cpu_speed
from lsa.attention import compiled
from tests.experiments.command import ORIGIN, bare_session, go_on

pytestmark = pytest.mark.slow


def test_a_run_times_every_body_and_leaves_what_was_chosen():
    before = torch.get_num_threads(), compiled.BODY, compiled.AVAILABLE
    run, _ = cpu_speed.runs("cpu", smoke=True)
    assert not cpu_speed.runs("cuda", smoke=True)
    tables = cpu_speed.perform(run.config, bare_session()).tables
    assert before == (torch.get_num_threads(), compiled.BODY, compiled.AVAILABLE)
    rows, steps = tables["rows"], tables["steps"]
    expected = {"torch", "softmax"} | ({"compiled", "decayed"} if before[2] else set())
    assert {*rows["implementation"]} == expected and {*rows["length"]} == {16, 64}
    assert {"torch recurrent", "torch chunked"} <= {*steps["step"]}
    assert all(x > 0 for x in rows["seconds"] + steps["seconds"])


def test_one_token_takes_a_state_and_gives_the_next():
    _, run = cpu_speed.runs("cpu", smoke=True)
    tables = cpu_speed.perform(run.config, bare_session()).tables
    assert tables.keys() == {"limits", "steps"}
    assert {*tables["steps"]["length"]} == {1}
    call = cpu_speed.call_of((2, 4, 1), 0, compiled.BODY, mode="recurrent", state=True)
    body = compiled.BODY, compiled.AVAILABLE
    o, (S, z) = call()
    assert body == (compiled.BODY, compiled.AVAILABLE)
    assert o.shape == (1, 1, 2, 4) and S.shape == (1, 2, 4, 4) and (z > 1).all()


def test_points_that_are_there_are_not_timed_again():
    run, _ = cpu_speed.runs("cpu", smoke=True)
    whole = cpu_speed.perform(run.config, bare_session()).tables
    rows = {name: values[:] for name, values in whole["rows"].items()}
    session = go_on(bare_session(), {"limits": whole["limits"], "rows": rows})
    assert cpu_speed.perform(run.config, session).tables["rows"] == whole["rows"]
    assert session.earlier == [ORIGIN]
