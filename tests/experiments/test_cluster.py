"""The plan spread over jobs, and results collected: a rehearsal by submitit on this computer."""

import os
import sys
from functools import partial
from types import SimpleNamespace

import pytest

from experiments.__main__ import main
from experiments.harness.core import cluster, record
from experiments.harness.core.plan import Run, UsageError

RUNS = [Run("a", name, {}, 0) for name in "abcde"]


def test_parts_are_the_plan_and_no_two_share_a_run():
    for jobs in (1, 2, 3, 7):
        parts = [cluster.part_of(RUNS, f"{i + 1}/{jobs}") for i in range(jobs)]
        assert sorted(run.name for part in parts for run in part) == [*"abcde"]
    assert cluster.part_of(RUNS, None) == RUNS


@pytest.mark.parametrize("part", ["", "2", "0/3", "4/3", "1/0", "-1/2", "a/b", "1/2/3", "1 /2"])
def test_a_part_that_is_none_is_refused(part):
    with pytest.raises(UsageError, match="^--part: expected I/N with I from 1 to N, got "):
        cluster.part_of(RUNS, part)


def test_a_job_of_several_ranks_runs_under_torchrun(tmp_path):
    given = {"out": tmp_path, "jobs": 2, "hours": 24}
    alone, _ = cluster.commands(["race"], ranks=1, **given)
    assert alone[1:4] == ["-m", "experiments", "run"] and alone[-2:] == ["--part", "1/2"]
    _, several = cluster.commands(["race", "--force"], ranks=8, **given)
    assert several[1:] == [
        "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=8",
        "-m", "experiments", "run", "race", "--force",
        "--out", str(tmp_path), "--budget", str(24 * 3600 - 600), "--part", "2/2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"jobs": 0}, "--jobs: expected 1 or more, got 0"),
        ({"ranks": 0}, "--ranks: expected 1 or more, got 0"),
        ({"hours": 0.0}, "--hours: expected more than 0, got 0.0"),
        ({"slurm": {"cheese": "1"}}, "submitit: Unknown argument 'cheese'"),
        ({"cluster": "moon"}, "submitit: "),
    ],
)
def test_jobs_that_cannot_be_are_refused(tmp_path, changed, message):
    pytest.importorskip("submitit")
    given = {"out": tmp_path, "jobs": 1, "ranks": 1, "hours": 1.0, "cluster": "local", **changed}
    with pytest.raises(UsageError) as error:
        cluster.submit([], **given)
    assert str(error.value).startswith(message)


def test_without_submitit_one_line_asks_for_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "submitit", None)
    command = ["submit", "--jobs", "1", "--hours", "1", "--out", str(tmp_path), "--", "race"]
    assert main(command) == 1
    said = "error: submit needs the package submitit: pip install submitit\n"
    assert capsys.readouterr().err == said


def test_the_chapters_recipe_is_an_array_of_jobs_for_slurm(tmp_path, monkeypatch, capsys):
    """What sbatch is given. Slurm itself is not here: its place is taken by two scripts."""
    pytest.importorskip("submitit")
    programs, given = tmp_path / "bin", tmp_path / "given"
    programs.mkdir()
    for name in ("sbatch", "srun"):
        (programs / name).write_text(f'#!/bin/sh\ncp "$1" {given}\necho Submitted batch job 7\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    jobs = ["submit", "--jobs", "4", "--ranks", "8", "--hours", "24", "--out", str(tmp_path)]
    options = ["--slurm", "partition=gpu", "--slurm", "cpus_per_task=64"]
    assert main([*jobs, *options, "--", "loss_curves"]) == 0
    assert capsys.readouterr().out.startswith("4 jobs: 7_0, 7_1, 7_2, 7_3\n")
    asked = {line for line in given.read_text().splitlines() if line.startswith("#SBATCH")}
    wanted = ("array=0-3%4", "partition=gpu", "cpus-per-task=64", "gpus-per-node=8", "nodes=1",
              "ntasks-per-node=1", "time=1440")  # fmt: skip
    assert asked >= {f"#SBATCH --{one}" for one in wanted}


def test_without_slurm_nothing_is_started(tmp_path, monkeypatch, capsys):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    command = ["submit", "--jobs", "1", "--hours", "1", "--out", str(tmp_path / "out"), "--", "x"]
    assert main(command) == 1
    said = 'error: submitit: Could not detect "srun", are you indeed on a slurm cluster?\n'
    assert capsys.readouterr().err == said


def test_jobs_share_the_plan(tmp_path, monkeypatch, capsys):
    """Here the jobs run in this process, one after the other."""
    submitit = pytest.importorskip("submitit")
    here = partial(submitit.AutoExecutor, cluster="debug")
    monkeypatch.setattr(submitit, "AutoExecutor", lambda folder, cluster: here(folder))

    def run(command, check):
        monkeypatch.setattr(sys, "argv", command[2:])
        assert check and main(command[3:]) == 0

    monkeypatch.setattr(cluster, "subprocess", SimpleNamespace(run=run))
    what = ["rnn_orders", "taylor_error", "--device", "cpu", "--smoke"]
    how = ["--cluster", "local", "--jobs", "2", "--hours", "0.1", "--out", str(tmp_path)]
    assert main(["submit", *how, "--", *what]) == 0
    assert capsys.readouterr().out.count("1 new result under") == 2
    parts = {
        one["provenance"]["command"].rpartition(" ")[2] for one in record.load(results=tmp_path)
    }
    assert parts == {"1/2", "2/2"}
