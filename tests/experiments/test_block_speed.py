"""Block speed: its tables, and that a call forms the gradients of everything."""

import pytest

from experiments import block_speed
from lsa.attention import MODES
from lsa.gpt import Block, gpt_config
from tests.experiments.command import CPU, ORIGIN, bare_session, go_on


def test_a_run_times_every_mode():
    (run,) = block_speed.runs("cpu", smoke=True)
    outcome = block_speed.perform(run.config, bare_session())
    assert outcome.complete
    found = outcome.tables["rows"]
    assert found["mode"] == ["softmax", *MODES, "none"]
    assert all(seconds > 0 for seconds in found["seconds"])


def test_lengths_that_are_there_are_not_timed_again():
    (run,) = block_speed.runs("cpu", smoke=True)
    whole = block_speed.perform(run.config, bare_session()).tables
    session = go_on(bare_session(), {name: {**table} for name, table in whole.items()})
    session.save = lambda tables: pytest.fail("timed again")
    assert block_speed.perform(run.config, session).tables == whole
    assert session.earlier == [ORIGIN]


@pytest.mark.parametrize("mode", ("softmax", *MODES, "none"))
def test_a_call_is_forward_and_all_gradients(mode):
    """The same gradients whatever the mode of linear attention, and one for every parameter."""
    (run,) = block_speed.runs("cpu", smoke=True)
    gradients = block_speed.block_call(mode, run.config, 33, CPU)()
    block = Block(gpt_config("nano"))
    assert [g.shape for g in gradients] == [(1, 33, 128), *(p.shape for p in block.parameters())]
    assert all(g.isfinite().all() for g in gradients)
    if mode in MODES:
        expected = block_speed.block_call("recurrent", run.config, 33, CPU)()
        for got, want in zip(gradients, expected, strict=True):
            assert (got - want).norm() <= 0.02 * want.norm()  # autocast rounds to bfloat16
