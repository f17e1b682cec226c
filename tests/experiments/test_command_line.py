"""The command line: what it says of mistakes, what it chooses, what it brings home."""

import re
import shlex
import signal
import subprocess
import sys

import pytest
import torch

from experiments.__main__ import _parser, main
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import record, runner
from tests.experiments.command import smoke


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "loss_curve"], "experiment: expected one of block_speed, "),
        (["run", "--device", "tpu"], "device: expected cpu or cuda, got 'tpu'"),
        (["run", "--only", "scale"], "--only: expected key=value, got 'scale'"),
        (["run", "--only", "colour=red"], "--only: no run has 'colour'; keys are"),
        (
            ["run", "loss_curves", "--only", "name=first-8"],
            "--only: no run has name=first-8; name can",
        ),
        (["run", "loss_curves", "--only", "scale=13B"], "--only: no run has scale=13B; scale can"),
        (["run", "--budget", "nan"], "--budget: expected seconds above 0, got nan"),
        (["run", "--budget", "-1"], "--budget: expected seconds above 0, got -1.0"),
        (["collect", "nowhere.tar"], "nowhere.tar: no such file or folder"),
        (["check", "nowhere"], "nowhere: no such folder"),
    ],
)
def test_mistakes_are_one_line(arguments, message, capsys):
    if arguments[0] == "run":
        arguments = [*arguments, "--smoke"]
        if "--device" not in arguments:
            arguments = [*arguments, "--device", "cpu"]
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
@pytest.mark.slow
def test_a_reader_that_has_gone_ends_the_list_without_a_word():
    command = [sys.executable, "-m", "experiments", "list", "--device", "cpu"]
    listing = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=record.ROOT
    )
    listing.stdout.close()
    assert listing.stderr.read() == b""
    listing.stderr.close()
    assert listing.wait() == 128 + signal.SIGPIPE


def test_what_the_documents_say_of_the_command_is_so():
    """Each command is one that is understood, and each option one of the command's."""
    pages = [*record.ROOT.glob("*.md"), *(record.ROOT / "book").glob("*.md")]
    texts = {path: path.read_text(encoding="utf-8").replace("\\\n", " ") for path in pages}
    known = {
        option
        for verb in _parser()._subparsers._group_actions[0].choices.values()
        for option in verb._option_string_actions
    }
    found = 0
    for path, text in texts.items():
        for given in re.findall(r"-m experiments ([a-z]+ [^`#\n]+)", text):
            _parser().parse_args(shlex.split(given))
            found += 1
        assert {*re.findall(r"`(--[a-z][a-z-]+)", text)} <= known, path
    assert found > 10


def test_cuda_asked_for_and_absent(capsys):
    assert main(["run", "--device", "cuda"]) == 1
    assert "cuda asked for, but torch sees no GPU" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_named_before_anything_runs(tmp_path, capsys):
    (tmp_path / "out").write_text("a file where a folder should be")
    assert smoke(tmp_path, "mode_speed") == 1
    error = capsys.readouterr().err
    assert "cannot be written" in error
    assert "--out" in error


def test_only_and_priorities():
    runs = runner.plan(EXPERIMENTS, ["loss_curves"], "cpu", only=["scale=nano,context=1024"])
    assert [run.name for run in runs] == ["nano-softmax-1024", "nano-linear-1024"]
    runs = runner.plan(EXPERIMENTS, ["race"], "cpu", only=["seed=0,model=linear, near only"])
    assert {run.config["model"] for run in runs} == {"linear, near only"}
    (run,) = runner.plan(EXPERIMENTS, [], "cpu", only=["name=first-8,seed=0"])
    assert (run.experiment, run.name) == ("replace_heads", "first-8")
    for kind in ("cpu", "cuda"):
        runs = runner.plan(EXPERIMENTS, [], kind)
        assert [run.priority for run in runs] == sorted(run.priority for run in runs)
        names = [(run.experiment, run.name) for run in runs]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("edited", [True, False])
def test_who_runs_edited_code_is_told_first(monkeypatch, tmp_path, capsys, edited):
    monkeypatch.setattr("experiments.__main__.git", lambda *_: "0" * 40)
    monkeypatch.setattr("experiments.__main__.is_edited", lambda: edited)
    monkeypatch.setattr(runner, "run_all", lambda *_, **__: 0)
    assert main(["run", "ngram_baseline", "--device", "cpu", "--out", str(tmp_path)]) == 0
    assert ("will be marked `dirty`" in capsys.readouterr().err) is edited


def test_collect_brings_results_home(tmp_path, capsys):
    assert smoke(tmp_path, "mode_speed") == 0
    home = tmp_path / "home"
    assert main(["collect", str(tmp_path / "out"), "--out", str(home)]) == 0
    (path,) = record.paths(home)
    assert record.read(path) == record.read(next(record.paths(tmp_path / "out")))
    assert main(["collect", str(tmp_path / "out"), "--out", str(home)]) == 0
    assert "stored already" in capsys.readouterr().out

    subprocess.run(["tar", "cJf", tmp_path / "a.tar.xz", "-C", tmp_path / "out", "."], check=True)
    assert main(["collect", str(tmp_path / "a.tar.xz"), "--out", str(tmp_path / "other")]) == 0
    broken = tmp_path / "broken.tar.xz"
    broken.write_bytes((tmp_path / "a.tar.xz").read_bytes()[:200])
    assert main(["collect", str(broken), "--out", str(tmp_path / "third")]) == 1

    # One unsound file among the sound: nothing is written.
    source = next(record.paths(tmp_path / "out"))
    source.with_name("bad.json").write_text("{")
    assert main(["collect", str(tmp_path / "out"), "--out", str(tmp_path / "fourth")]) == 1
    assert not list((tmp_path / "fourth").rglob("*.json"))
