"""The runner: repeats what it stored, resumes, keeps to its budget, and survives being killed."""

import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from experiments import loss_curves, mode_speed
from experiments.__main__ import main
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import record, run_files, runner
from experiments.harness.core.plan import Outcome, Run
from experiments.harness.core.provenance import describe_device
from experiments.harness.core.states import state_of
from experiments.harness.core.tables import Column, Table
from experiments.harness.learning import corpora
from experiments.harness.learning.corpora import CorpusError, load_corpus
from tests.experiments.command import CPU, bare_session, smoke
from tests.parallel.pool import server

# An experiment that reads what another left is performed after it.
GROUPS = [
    ["race", "long_context", "whole_novels", "written_words"],
    ["long_race", "novel_states", "far_heads"],
]
GROUPS += [
    [name]
    for name, experiment in EXPERIMENTS.items()
    if not experiment.frozen and all(name not in group for group in GROUPS)
]
# What kernels compile to for the other GPU is tested with the kernels.
ONLY = {"kernel_build": ["arch=90"], "scan_build": ["arch=90"]}


@pytest.mark.slow
@pytest.mark.parametrize("asked", GROUPS, ids=" ".join)
def test_smoke_runs_are_stored_sound_and_found_again(
    asked, tmp_path, made_corpus, monkeypatch, capsys
):
    monkeypatch.setattr("experiments.rank_speed.get_context", lambda _: server())
    only = ONLY.get(asked[0], [])
    planned = runner.plan(EXPERIMENTS, asked, "cpu", smoke=True, only=only)
    asked = [*asked, *(f"--only={one}" for one in only)]
    assert smoke(tmp_path, *asked) == 0
    records = record.load(results=tmp_path / "out")
    assert {r["name"] for r in records} == {run.name for run in planned}
    assert all(r["complete"] for r in records)
    assert not records or main(["check", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert smoke(tmp_path, *asked) == 0
    assert "0 new results" in capsys.readouterr().out


def test_a_model_is_trained_before_what_reads_it():
    planned = runner.plan(EXPERIMENTS, [], "cpu")
    places = {(run.experiment, run.name): place for place, run in enumerate(planned)}
    readers = [run for run in planned if "trained" in run.config]
    assert {"long_context", "novel_states"} < {run.experiment for run in readers}
    for run in readers:
        model = run.config.get("race", "race"), run.config["trained"]
        assert places[model] < places[run.experiment, run.name], run.name


def config(**changes):
    run, *_ = loss_curves.runs("cpu", True)
    return {**run.config, **changes}


def train(tmp_path, contents):
    given = bare_session(tmp_path / "run.pt", corpus=load_corpus)
    return loss_curves.perform(contents, given)


def test_what_was_done_before_is_no_measure_of_a_runs_speed():
    with runner._bar("a run that goes on") as (bar, show):
        show(900.0, 1000.0, "goes on", 900.0)
        show(910.0, 1000.0, "loss 2.0")
        at = bar.format_dict
    assert (at["initial"], at["n"], at["total"]) == (900, 910, 1000)


@pytest.mark.slow
def test_training_by_the_clock_stops_at_its_seconds(tmp_path, made_corpus):
    outcome = train(tmp_path, config(updates=0, train_seconds=0.2))
    seconds = outcome.tables["train"]["seconds"]
    assert outcome.complete
    assert sum(seconds) >= 0.2 > sum(seconds[:-1])


@pytest.mark.slow
def test_micro_batches_change_nothing_but_memory(tmp_path, made_corpus):
    one = train(tmp_path, config(updates=2))
    four = train(tmp_path, config(updates=2, micro_batches=4))
    np.testing.assert_allclose(one.tables["train"]["loss"], four.tables["train"]["loss"], atol=2e-3)


def test_a_budget_keeps_what_a_run_has_and_the_next_run_ends_it(tmp_path, made_corpus, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setattr(run_files, "PARTIAL_EVERY", 0.0)
    (run,) = runner.plan(EXPERIMENTS, ["mode_speed"], "cpu", smoke=True)
    ended = runner.perform(
        mode_speed.EXPERIMENT, run, CPU, out, "x", deadline=time.monotonic() + 0.3
    )
    device = describe_device(CPU)
    if not ended:
        assert state_of(run, out, device) == "partial"
    assert runner.run_all(EXPERIMENTS, [run], CPU, out) in (0, 1)
    assert state_of(run, out, device) == "stored"
    assert not record.partial_path(record.path_of(out, "mode_speed", device, run.name)).exists()
    assert runner.run_all(EXPERIMENTS, [run], CPU, out, budget=1e-9, force=True) == 0


def test_a_stored_run_of_another_configuration_is_said_to_be_one_and_kept(tmp_path, capsys):
    (run,) = runner.plan(EXPERIMENTS, ["mode_speed"], "cpu", smoke=True)
    assert runner.run_all(EXPERIMENTS, [run], CPU, tmp_path) == 1
    (path,) = record.paths(tmp_path)
    before = path.read_bytes()
    planned = replace(run, config={**run.config, "heads": 2, "new": True})
    assert state_of(planned, tmp_path, describe_device(CPU)) == "changed"
    assert runner.run_all(EXPERIMENTS, [planned], CPU, tmp_path) == 0
    said = "stored already, with other values of heads, new; --force replaces it"
    assert said in capsys.readouterr().out
    assert path.read_bytes() == before


def test_a_run_that_breaks_off_does_not_keep_others_from_theirs(tmp_path, monkeypatch, capsys):
    def out_of_memory(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("experiments.mode_speed.measure_in_turns", out_of_memory)
    assert smoke(tmp_path, "mode_speed", "sampling_speed") == 1
    said = capsys.readouterr().err
    assert "OutOfMemoryError" in said
    assert "1 new result under" in said and "broke off: mode_speed" in said
    (stored,) = record.paths(tmp_path / "out", partial=False)
    assert stored.parent.parent.name == "sampling_speed"


def two_lengths():
    """A run of timings at 32 and 64 tokens."""
    (run,) = runner.plan(EXPERIMENTS, ["mode_speed"], "cpu", smoke=True)
    return replace(run, config={**run.config, "shortest": 32})


def row_of(length, pass_name):
    """As one timing leaves it."""
    row = dict.fromkeys(mode_speed.TABLES["rows"].columns, 1)
    return [row | {"mode": "softmax", "pass": pass_name, "length": length}]


@pytest.mark.parametrize("same_code", [True, False])
def test_timings_go_on_where_they_broke_off_unless_the_code_has_changed(
    tmp_path, monkeypatch, same_code
):
    timed, broken = [], []

    def in_turns(config, length, pass_name, session):
        if length == config["longest"] and not broken:
            broken.append(length)
            raise torch.OutOfMemoryError("CUDA out of memory")
        timed.append(length)
        return row_of(length, pass_name)

    monkeypatch.setattr(mode_speed, "in_turns", in_turns)
    with pytest.raises(runner.FailedError):
        runner.run_all(EXPERIMENTS, [two_lengths()], CPU, tmp_path)
    (kept,) = record.load(results=tmp_path)
    assert not kept["complete"] and set(kept["tables"]["rows"]["length"]) == {32}
    if not same_code:
        origin = run_files.provenance
        other = {"code": "0" * 64}
        monkeypatch.setattr(run_files, "provenance", lambda *rest: origin(*rest) | other)
    timed.clear()
    assert runner.run_all(EXPERIMENTS, [two_lengths()], CPU, tmp_path) == 1
    passes = len(mode_speed.PASSES)
    assert timed == ([] if same_code else [32] * passes) + [64] * passes
    (whole,) = record.load(results=tmp_path)
    assert whole["complete"]
    assert whole["tables"]["rows"]["length"] == [32] * passes + [64] * passes
    assert len(whole["provenance"].get("legs", [0])) == (2 if same_code else 1)


def test_a_text_that_is_missing_is_looked_for_once_and_only_ends_runs_that_read_it(
    tmp_path, monkeypatch, capsys
):
    looked = []

    def missing(name, source):
        looked.append(name)
        raise CorpusError("put it there")

    monkeypatch.setattr(corpora, "load_corpus", missing)
    assert smoke(tmp_path, "loss_curves", "sampling_speed") == 1
    said = capsys.readouterr().err
    assert looked == ["novels"] and "put it there" in said
    assert "1 new result under" in said and "Traceback" not in said


def test_a_run_without_all_of_its_tables_is_kept_as_far_as_it_is(tmp_path, capsys):
    def perform(config, session):
        session.warn("no kernel would start")
        return Outcome({"limits": {"copy": [1e10], "matmul": [1e12], "call": [1e-6]}})

    none_timed = replace(EXPERIMENTS["mode_speed"], perform=perform)
    run = Run("mode_speed", "x", {"mode": "chunked"}, 0)
    with pytest.raises(runner.FailedError):
        runner.run_all({"mode_speed": none_timed}, [run], CPU, tmp_path)
    (kept,) = record.load(results=tmp_path)
    assert not kept["complete"]
    assert kept["provenance"]["warnings"] == ["no kernel would start"]
    assert "warning: no kernel would start" in capsys.readouterr().err


@pytest.mark.slow
def test_the_tenth_run_is_compiled_like_the_first(tmp_path):
    """torch gives up on code that was compiled eight times."""
    graphs = []

    def double(x):
        return 2 * x

    def perform(config, session):
        def backend(graph, inputs):
            graphs.append(config["n"])
            return graph.forward

        found = torch.compile(double, backend=backend, dynamic=False)(torch.ones(config["n"]))
        return Outcome({"rows": {"scale": found.tolist()}})

    one = replace(
        EXPERIMENTS["taylor_error"],
        perform=perform,
        tables={"rows": Table({"scale": Column("number", "twice one")})},
    )
    runs = [Run("taylor_error", f"n{n}", {"n": n}, 0) for n in range(2, 12)]
    assert runner.run_all({"taylor_error": one}, runs, CPU, tmp_path) == 10
    assert graphs == [run.config["n"] for run in runs]


@pytest.mark.slow
def test_forcing_a_run_again_never_loses_the_stored_one(tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert smoke(tmp_path, "mode_speed") == 0
    (stored,) = record.paths(out)
    before = stored.read_text()
    (run,) = runner.plan(EXPERIMENTS, ["mode_speed"], "cpu", smoke=True)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.mode_speed.measure_in_turns", killed)
    assert smoke(tmp_path, "mode_speed", "--force") == 130
    assert stored.read_text() == before
