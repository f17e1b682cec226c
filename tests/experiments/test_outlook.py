"""What a lease will do, in which order and when, and what it is told to lack beforehand."""

import itertools
from importlib import metadata

import pytest
import torch

from experiments import __main__ as command
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import outlook, record, runner
from experiments.harness.core.plan import Run
from experiments.harness.learning import corpora
from tests.experiments.command import gpu

pytestmark = pytest.mark.usefixtures("forked")


def test_a_corpus_that_is_missing_is_told_before_the_first_run(
    tmp_path, capsys, monkeypatch, made_corpus
):
    few = {name: EXPERIMENTS[name] for name in ("kernel_errors", "race")}
    monkeypatch.setattr(command, "EXPERIMENTS", few)
    runs = runner.plan(few, [], "cpu", smoke=True)
    assert outlook.without_text(runs, None) == ([], {})

    def missing(name, source=None):
        raise corpora.CorpusError(f"corpus {name}: cannot be had")

    monkeypatch.setattr(outlook, "load_corpus", missing)
    assert gpu(tmp_path, "--minutes", "1") == 1
    told = capsys.readouterr()
    assert "[1/" not in told.out and told.err.count("\n") == 1
    assert "corpus novels: cannot be had; 6 runs need novels" in told.err
    assert "--corpus-source" in told.err and "--without-corpus" in told.err
    assert gpu(tmp_path, "--minutes", "1", "--without-corpus") == 0
    assert "left out: 6 runs that need novels" in capsys.readouterr().out
    assert {one["experiment"] for one in record.load(results=tmp_path)} == {"kernel_errors"}


def test_a_dry_run_says_what_would_be_done_and_what_is_missing(
    tmp_path, capsys, monkeypatch, made_corpus
):
    found = {"flash-linear-attention": "0.5.0"}

    def version(package):
        if package not in found:
            raise metadata.PackageNotFoundError(package)
        return found[package]

    monkeypatch.setattr(outlook.metadata, "version", version)
    out = tmp_path / "out"
    asked = ["gpu", "--dry-run", "--minutes", "9", "--out", str(out)]
    assert command.main(asked) == 0
    said = capsys.readouterr().out
    assert not out.exists()
    assert f"torch {torch.__version__}" in said and "FlashAttention 3 is not installed" in said
    assert "no GPU that torch sees" in said
    assert "flash-linear-attention 0.5.0: its normaliser has a wrong gradient" in said
    assert "  0.0  kernel_errors bfloat16 (about 1.0 min)" in said
    assert "  1.0  kernel_speed ladder-" in said and "later  loss_curves 124M-linear" in said
    begun = [float(line[:5]) for line in said.splitlines() if line[:5].strip()[:1].isdigit()]
    assert begun == sorted(begun) and 7 < begun[-1] < 9

    found["flash-linear-attention"] = "0.5.1"
    monkeypatch.setattr(outlook, "load_corpus", corpora.load_corpus)
    monkeypatch.setenv("LSA_DATA", str(tmp_path / "none"))
    assert command.main(asked) == 0
    said = capsys.readouterr().out
    assert "no such file or folder; " in said and "runs need novels" in said
    assert "flash-linear-attention 0.5.1\n" in said and "loss_curves" not in said


def test_a_dry_run_knows_what_an_earlier_lease_has_done(two, tmp_path, capsys):
    assert gpu(tmp_path / "first", "--minutes", "1") == 0
    capsys.readouterr()
    assert gpu(tmp_path / "out", "--dry-run") == 0
    assert "taylor_error" in capsys.readouterr().out
    assert gpu(tmp_path / "out", "--dry-run", "--from", str(tmp_path / "first")) == 0
    assert "taylor_error" not in capsys.readouterr().out


def test_a_gpu_is_asked_the_most_telling_questions_first():
    """Correctness of what is raced, the race, the modes, the pair, a block, a tick; then more."""
    planned = runner.plan(EXPERIMENTS, [], "cuda")
    groups = [name for name, _ in itertools.groupby(run.experiment for run in planned)]
    first = ["kernel_errors", "kernel_speed", "mode_speed", "loss_curves", "block_speed"]
    assert groups[:6] == [*first, "sampling_speed"]
    (subset,) = (run for run in planned if run.priority == 1)
    (rest,) = (run for run in planned if run.name == "bfloat16-rest")
    assert subset.config["dtype"] == rest.config["dtype"] == "bfloat16"
    assert len(subset.config["cases"]) == 14
    every = subset.config["cases"] + rest.config["cases"]
    (wide,) = (r for r in planned if r.experiment == "kernel_errors" and r.name == "float32")
    assert sorted(map(str, every)) == sorted(map(str, wide.config["cases"]))
    assert all(outlook.expected(run) for run in planned if run.priority < 15)


def test_a_run_that_does_not_fit_gives_way_to_one_that_does():
    long, unknown, short = (Run("x", "x", {}, 0, expected) for expected in (90.0, None, 20.0))
    training = Run("x", "x", {"train_seconds": 75}, 0)
    assert outlook.expected(training) > 75
    assert outlook.choose([long, short], 100) is long
    assert outlook.choose([long, unknown, short], 60) is short
    assert outlook.choose([long, training], 10) is long
    assert "about 1.5 min" in outlook.in_words(long) and "unknown" in outlook.in_words(unknown)
