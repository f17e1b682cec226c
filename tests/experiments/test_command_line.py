"""The command line: what it says of mistakes, what it chooses, what it brings home."""

import os
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

# Words that stand for a file that is no archive, an empty folder, a pipe that nobody writes to, and
# a name that is too long for a file.
PLACES = ("FILE", "EMPTY", "PIPE")
LEASE = "gpu --device cpu --smoke"
SMOKE = "run rnn_orders --smoke --device cpu --out EMPTY"
TEXT = "run variants --smoke --device cpu --out EMPTY --corpus-source"
MISTAKES = {
    "run nothing": "experiment: expected one of block_speed, .*, got 'nothing'",
    "run host_time": "experiment: the code of host_time was removed after commit 3d84f693aaa8",
    "run --device tpu": "device: expected cpu or cuda, got 'tpu'",
    "gpu --device tpu --out EMPTY": "device: expected cpu or cuda, got 'tpu'",
    "gpu --device cpu:99:1 --out EMPTY": "device: .*cpu:99:1",
    f"{LEASE} --out EMPTY --minutes 0.1": "--minutes: expected more than",
    f"{LEASE} --out EMPTY --minutes nan": "--minutes: expected more than",
    f"{LEASE} --out EMPTY --minutes -3": "--minutes: expected more than",
    f"{LEASE} --out EMPTY --from nowhere": "nowhere: no such file or folder",
    f"{LEASE} --out EMPTY --corpus-source nowhere": "corpus source nowhere: no such file or folder",
    f"{LEASE} --out FILE": "FILE: cannot be written",
    "list --device ''": "device: expected cpu or cuda, got ''",
    "list --only x": "--only: expected key=value, got 'x'",
    "list --only nokey=1": "--only: no run has 'nokey'; keys are",
    "list --only scale=giga": "--only: no run has scale=giga; scale can be",
    "list loss_curves --only name=first-8": "--only: no run has name=first-8; name can",
    f"{SMOKE} --budget nan": "--budget: expected seconds above 0, got nan",
    f"{SMOKE} --budget -1": "--budget: expected seconds above 0, got -1.0",
    f"{SMOKE} --budget soon": "argument --budget: invalid float value: 'soon'",
    "list --ranks 0": "--ranks: expected 1 or more, got 0",
    "run rnn_orders --smoke --device cpu": "--smoke: expected --out with a folder other than",
    "check EMPTY": "EMPTY: no result files in it",
    f"{SMOKE} --out ''": "argument --out: expected a path, got ''",
    f"{SMOKE} --out FILE": "FILE: cannot be written .*--out",
    f"{SMOKE} --out LONG": "File name too long",
    f"{SMOKE} --corpus-source ''": "argument --corpus-source: expected a path, got ''",
    f"{TEXT} nowhere": "corpus source nowhere: no such file or folder",
    f"{TEXT} PIPE": "corpus source PIPE: expected a folder or a regular file",
    f"{TEXT} /dev/zero": "corpus source /dev/zero: expected a folder or a regular file",
    f"{TEXT} LONG": "File name too long",
    "list rnn_orders --device cpu --out LONG": "File name too long",
    "check nowhere": "nowhere: no such folder",
    "check ''": "argument folder: expected a path, got ''",
    "check LONG": "File name too long",
    "collect nowhere": "nowhere: no such file or folder",
    "collect ''": "argument source: expected a path, got ''",
    "collect LONG": "File name too long",
    "collect FILE": "FILE: not a folder or a whole archive",
    "collect EMPTY": "EMPTY: no result files in it",
    "collect EMPTY --out LONG": "EMPTY: no result files in it",
    "collect PIPE": "PIPE: expected a folder or a regular file",
    "collect /dev/zero": "/dev/zero: expected a folder or a regular file",
    "fly": "invalid choice: 'fly'",
}
if not torch.cuda.is_available():
    MISTAKES[f"{SMOKE} --device cuda"] = "cuda asked for, but torch sees no GPU"


@pytest.mark.parametrize("command", MISTAKES)
def test_mistakes_are_one_line(command, tmp_path, capsys):
    places = {name: tmp_path / name.lower() for name in PLACES}
    places["FILE"].write_text("no archive")
    places["EMPTY"].mkdir()
    os.mkfifo(places["PIPE"])
    words = {**{name: str(path) for name, path in places.items()}, "LONG": "a" * 300}
    most = 1
    try:
        assert main([words.get(word, word) for word in shlex.split(command)])
    except SystemExit as stop:  # argparse's own, after two lines on how the command is used
        assert stop.code == 2
        most = 9
    *usage, last = capsys.readouterr().err.strip().splitlines()
    for word, path in places.items():
        last = last.replace(str(path), word)
    assert len(usage) < most and "error: " in last
    assert re.search(MISTAKES[command], last), last
    assert not [path for path in places["EMPTY"].rglob("*") if path.suffix == ".json"]


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

    # One unsound file among the sound: nothing is written.
    source = next(record.paths(tmp_path / "out"))
    source.with_name("bad.json").write_text("{")
    assert main(["collect", str(tmp_path / "out"), "--out", str(tmp_path / "fourth")]) == 1
    assert not list((tmp_path / "fourth").rglob("*.json"))


def test_what_another_device_has_stored_is_elsewhere(tmp_path, capsys):
    """The list says so, and a run makes it here."""
    assert smoke(tmp_path, "taylor_error") == 0
    (folder,) = (tmp_path / "out" / "taylor_error").iterdir()
    folder.rename(folder.with_name("cpu-another-1"))
    capsys.readouterr()
    arguments = ["taylor_error", "--smoke", "--device", "cpu", "--out", str(tmp_path / "out")]
    assert main(["list", *arguments]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["elsewhere"]
    assert main(["run", *arguments]) == 0
    assert folder.is_dir()
