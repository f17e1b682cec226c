"""A lease rehearsed, with a GPU's stand-in: every step of what comes first on a GPU."""

from dataclasses import replace

import pytest

from experiments import __main__ as command
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import lease, record
from experiments.harness.core.checking import check_folder
from experiments.harness.core.collect import collect
from tests.experiments.stand_in import stand_in

FIRST = (
    "kernel_errors", "kernel_speed", "mode_speed", "loss_curves", "block_speed", "sampling_speed",
    "scan_speed",
)  # fmt: skip

ABSENT = ("softmax, cuDNN", "softmax, flash 3", "mamba_ssm", "kernel: ", "kernel forward")


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_every_step_of_a_lease(tmp_path, monkeypatch, made_corpus, capfd):
    """Through the processes, the records' checks, the archive and home."""
    few = {name: EXPERIMENTS[name] for name in FIRST}
    # Its runs of other types differ in nothing else.
    errors = few["kernel_errors"]
    few["kernel_errors"] = replace(errors, runs=lambda *given: errors.runs(*given)[:2])
    monkeypatch.setattr(command, "EXPERIMENTS", few)
    out = tmp_path / "out"
    with stand_in():
        status = command.main(["gpu", "--smoke", "--minutes", "5", "--out", str(out)])
    told = capfd.readouterr()
    assert status == 0, told.err
    assert "Traceback" not in told.err
    stored = {(one["experiment"], one["name"]): one for one in record.load(results=out)}
    assert {name for name, _ in stored} == set(FIRST)
    assert all(one["complete"] for one in stored.values())
    assert all(one["provenance"]["device"]["name"] == "Stand-in" for one in stored.values())
    (race,) = (one for (name, _), one in stored.items() if name == "kernel_speed")
    rows, compared = race["tables"]["rows"], race["tables"]["errors"]
    raced = {"ours", "ours, normalised", "ours, fading"}
    raced |= {"fla chunk", "fla chunk, normalised", "fla simple_gla, fading"}
    assert raced <= set(rows["implementation"]) and raced <= set(compared["implementation"])
    assert race["tables"]["peers"]["library"] == ["fla"]
    assert {*zip(rows["pass"], rows["launch"], strict=True)} == {
        (one, launch) for one in ("forward", "forward+backward") for launch in ("eager", "graph")
    }
    assert max(compared["error"]) <= 3.3e-3
    # What is warned of is what the stand-in does not have, and nothing else.
    warned = {text for one in stored.values() for text in one["provenance"].get("warnings", ())}
    assert all(text.startswith(ABSENT) for text in warned), warned
    total, problems, _ = check_folder(EXPERIMENTS, out)
    assert total == len(stored) and not problems
    collect(EXPERIMENTS, out / lease.ARCHIVE, tmp_path / "home")
    assert len(record.load(results=tmp_path / "home")) == len(stored)


@pytest.mark.parametrize("name", FIRST)
def test_what_is_rehearsed_is_configured_as_the_plan_is(name):
    """Else a step would meet on a GPU what it has not met here."""
    rehearsed, planned = (
        {key for run in EXPERIMENTS[name].runs("cuda", smoke) for key in run.config}
        for smoke in (True, False)
    )
    assert planned == rehearsed
