"""The draft's program: the same function as the package's modes, timed in turns."""

import pytest
import torch

from experiments import draft_speed
from tests.experiments.command import CPU, bare_session


@pytest.mark.parametrize("backward", [False, True])
def test_all_programs_compute_the_same_function(backward):
    (run,) = draft_speed.runs("cpu", smoke=True)
    theirs, *others = (
        draft_speed.program_call(program, run.config, 64, backward, CPU)()
        for program in run.config["programs"]
    )
    for ours in others:
        torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=2e-5)


def test_a_run_times_every_program_and_a_copy():
    (run,) = draft_speed.runs("cpu", smoke=True)
    tables = draft_speed.perform(run.config, bare_session()).tables
    assert tables["rows"]["program"] == run.config["programs"] * 2
    assert tables["limits"]["copy"][0] > 0
    states = 64 * 64 * 64 * 4  # one a token
    peaks = dict(zip(tables["rows"]["program"], tables["rows"]["peak"], strict=True))
    assert peaks["cumsum"] >= states > 8 * peaks["chunks of one token"]
