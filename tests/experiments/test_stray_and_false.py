"""What lies beside records and is none, weights that are not a run's, records that contradict."""

import json
import os
import subprocess
import tarfile
from datetime import UTC, datetime

import numpy as np
import pytest

from experiments.__main__ import main
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import checking, code, lease, provenance, record, runner
from experiments.harness.core.collect import collect
from experiments.harness.core.files import LONGEST, one_line
from experiments.harness.core.weights import WEIGHTS, describe_weights, pack_arrays
from tests.experiments.command import smoke
from tests.experiments.test_checking import check, one, put


def packed(w=None):
    return pack_arrays({"w": np.ones((2, 3), np.float32) if w is None else w})


def with_weights(folder, found=None):
    """A record that describes its weights, or another, and these weights beside it."""
    described = {**one(), "weights": describe_weights(packed())}
    path = put(folder, record.sign(found or described))
    path.with_suffix(WEIGHTS).write_bytes(packed())
    return path


def test_weights_signed_again_are_still_of_the_configurations_model():
    stored = next(one for one in record.load("race") if "weights" in one)
    shapes = stored["weights"]["shapes"]
    for other in (
        {**shapes, "wte.weight": [256, 64]},
        {**shapes, "more": [1]},
        {name: shape for name, shape in shapes.items() if name != "wte.weight"},
    ):
        false = record.sign({**stored, "weights": {**stored["weights"], "shapes": other}})
        with pytest.raises(record.RecordError, match="weights.shapes.*: expected .*, got "):
            checking.check_record(EXPERIMENTS, false, "one")


def test_a_stray_file_costs_no_lease(tmp_path):
    """Settings, half a record, a folder, a pipe, a link to nothing; and results behind a link."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    put(elsewhere, record.sign(one()), where="cpu-amd-epyc-2")
    out.mkdir()
    (out / "loss_curves").symlink_to(elsewhere)
    (out / "settings.json").write_text('{"shell": "bash"}')
    (out / "half.json").write_text('{"schema": 2, "exp')
    (out / "folder.json").mkdir()
    os.mkfifo(out / "pipe.json")
    (out / "dangling.json").symlink_to(tmp_path / "nowhere")
    (out / "loop").symlink_to(out)
    archive, left = lease.pack(out)
    assert [line.partition(":")[0].rpartition("/")[2] for line in left] == [
        "half.json", "settings.json",
    ]  # fmt: skip
    with tarfile.open(archive) as members:
        assert members.getnames() == ["loss_curves/cpu-amd-epyc-2/nano-linear-256.json"]
        assert all(member.isfile() for member in members)
    collect(EXPERIMENTS, archive, tmp_path / "home")
    (out / "half.json").unlink()
    lines = collect(EXPERIMENTS, out, tmp_path / "other")
    assert any("settings.json: not a record" in line for line in lines)
    assert len([*record.paths(tmp_path / "other")]) == 1


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (b"", "packed: expected"),
        (packed()[:-30], "packed: expected"),
        (packed(w=np.full((2, 3), np.nan)), "not finite"),
        (packed(w=np.ones((3, 2), np.float32)), "not the weights that the record describes"),
        (packed(w=np.zeros((2, 3), np.float32)), "not the weights that the record describes"),
        (packed(w=np.zeros(2**26, np.int8)), "more than"),
    ],
    ids=["empty", "cut", "not finite", "of another shape", "others", "large"],
)
def test_weights_are_those_of_their_run(tmp_path, capsys, weights, message):
    path = with_weights(tmp_path / "found")
    assert check(tmp_path / "found", capsys)[0] == 0
    path.with_suffix(WEIGHTS).write_bytes(weights)
    for verb in ("check", "collect"):
        out = ["--out", str(tmp_path / "home")] if verb == "collect" else []
        assert main([verb, str(tmp_path / "found"), *out])
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1
    assert not [*(tmp_path / "home").rglob("*.*")]
    # A lease brings the record home, and names what it leaves out.
    archive, left = lease.pack(tmp_path / "found")
    assert len(left) == 1 and message in left[0]
    (line,) = collect(EXPERIMENTS, archive, tmp_path / "home")
    assert line.startswith("collected ") and line.endswith(
        "nano-linear-256.json (without its weights)"
    )


def test_a_record_comes_without_its_weights_and_they_come_later(tmp_path, capsys):
    """An archive that would have been too large has none, nor one of a lease that was cut off."""
    new, home = tmp_path / "new", tmp_path / "home"
    path = with_weights(new)
    archive, _ = lease.pack(new, kinds=[".json"])
    (line,) = collect(EXPERIMENTS, archive, home)
    assert line.endswith("(without its weights)")
    assert check(home, capsys)[0] == 0
    path.with_suffix(WEIGHTS).rename(tmp_path / "aside")
    status, said, _ = check(new, capsys)
    assert status == 1 and "expected the weights that the record describes" in said
    (tmp_path / "aside").rename(path.with_suffix(WEIGHTS))
    assert len(collect(EXPERIMENTS, lease.pack(new)[0], home)) == 2
    assert check(home, capsys)[0] == 0
    assert [found.read_bytes() for found in home.rglob(f"*{WEIGHTS}")] == [packed()]
    (stored,) = record.paths(home)
    assert record.read(stored) == record.read(path)


def test_weights_without_a_record_or_a_description_are_told(tmp_path, capsys):
    path = with_weights(tmp_path, found=one())
    status, said, _ = check(tmp_path, capsys)
    assert status == 1 and "weights: not described" in said
    path.unlink()
    status, said, _ = check(tmp_path, capsys)
    assert status == 1 and "weights without a record" in said


def test_collected_weights_are_described(tmp_path):
    """A run of earlier code describes none. Those of another run of the same name stay away."""
    with_weights(tmp_path / "new", found=one())
    collect(EXPERIMENTS, tmp_path / "new", tmp_path / "home")
    (path,) = record.paths(tmp_path / "home")
    assert record.read(path)["weights"] == describe_weights(packed())
    path.with_suffix(WEIGHTS).unlink()
    with_weights(tmp_path / "new", found=one(provenance__seconds=7.0))
    collect(EXPERIMENTS, tmp_path / "new", tmp_path / "home")
    assert not path.with_suffix(WEIGHTS).exists()


@pytest.mark.parametrize("size", [200 * 2**30, 2**27])
def test_a_sparse_member_is_refused_unread(tmp_path, capsys, size):
    sparse = tmp_path / "big.json"
    with sparse.open("wb") as file:
        file.truncate(size)
    archive = tmp_path / "sparse.tar"
    subprocess.run(
        ["tar", "--sparse", "-cf", archive, "-C", tmp_path, "big.json"], check=True, timeout=60
    )
    sparse.unlink()
    assert archive.stat().st_size < 20_000
    assert main(["collect", str(archive), "--out", str(tmp_path / "home")]) == 1
    said = capsys.readouterr().err
    assert "big.json: expected at most" in said and said.count("\n") == 1


@pytest.mark.parametrize("contents", [{}, {"half.json": '{"schema": 2, "exp'}])
def test_what_is_wrong_in_an_archive_is_told_of_the_archive(tmp_path, contents):
    """Not of the folder in which it was unpacked."""
    path = tmp_path / "some.tar"
    with tarfile.open(path, "w") as archive:
        for name, text in contents.items():
            (tmp_path / name).write_text(text)
            archive.add(tmp_path / name, name)
    with pytest.raises(record.RecordError, match=f"^{path}") as caught:
        collect(EXPERIMENTS, path, tmp_path / "home")
    assert all(name in str(caught.value) for name in contents)


def test_a_place_that_is_no_utf8_ends_in_a_record(tmp_path, monkeypatch, capsys):
    out = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    arguments = ["run", "mode_speed", "--smoke", "--device", "cpu", "--out", out]
    monkeypatch.setattr(provenance.sys, "argv", ["experiments", *arguments[:-1], "--out=" + out])
    assert main(arguments) == 0
    (stored,) = record.load(results=runner.Path(out))
    command = stored["provenance"]["command"]
    assert "\\xff" in command and str(tmp_path) not in command


@pytest.mark.parametrize("year", [1970, 2070])
def test_a_wrong_clock_is_told_before_the_first_run(tmp_path, monkeypatch, capsys, year):
    class Clock(datetime):
        @classmethod
        def now(cls, zone=None):
            return cls(year, 1, 2, tzinfo=UTC)

    monkeypatch.setattr(runner, "datetime", Clock)
    assert smoke(tmp_path, "mode_speed") == 1
    said = capsys.readouterr().err
    assert f"clock says {year}-01-02" in said and said.count("\n") == 1
    assert not [*record.paths(tmp_path / "out")]


@pytest.mark.slow
def test_a_record_that_was_edited_is_not_stored_and_is_set_aside(tmp_path, capsys):
    assert smoke(tmp_path, "mode_speed") == 0
    (path,) = record.paths(tmp_path / "out")
    contents = json.loads(path.read_text())
    contents["config"]["heads"] = 7
    path.write_text(json.dumps(contents))
    listing = ["list", "mode_speed", "--smoke", "--device", "cpu", "--out", str(tmp_path / "out")]
    assert main(listing) == 0
    assert "unsound" in capsys.readouterr().out
    assert smoke(tmp_path, "mode_speed") == 0
    said = capsys.readouterr()
    assert "1 new result under" in said.out and "set aside as" in said.err
    assert record.read(path)["config"]["heads"] == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tables__train__update": [0, 1, 2]}, "train.update: expected the last to be 3"),
        ({"tables__train__update": [0, 2, 3]}, "train.update: expected steps of 1 up to 3"),
        ({"tables__train": {}}, "train.update: expected the last to be 3, got []"),
        ({"tables__validation__update": [0, 9]}, "validation.update: expected the last to be 3"),
        ({"config__train_seconds": 1}, "train.seconds: expected 1 in all, got 0.3"),
        ({"config__context": 512}, "config.context: expected 256, as nano-linear-256 says"),
        ({"config__attention": "softmax"}, "config.attention: expected 'linear'"),
    ],
)
def test_a_record_that_contradicts_itself_is_told(tmp_path, capsys, changes, message):
    """Re-signed, so that no digest tells."""
    whole = {"tables__train__update": [1, 2, 3], "tables__validation__update": [0, 3]}
    fixed = {"config__train_seconds": 0, "config__updates": 3}
    put(tmp_path, record.sign(one(**fixed, **whole)))
    assert check(tmp_path, capsys)[0] == 0
    put(tmp_path, record.sign(one(**fixed | whole | changes)))
    status, said, _ = check(tmp_path, capsys)
    assert status == 1 and (message in said or "tables.train: expected rows" in said)


@pytest.mark.parametrize("name", ["variants", "state_size", "made_up_tasks", "plateau"])
def test_half_of_a_stored_training_is_told(name):
    """Whatever its ending is called: `finished` once counted as ended early."""
    told, halves = set(), 0
    for stored in record.load(name):
        curve = "train" if "train" in stored["tables"] else "curve"
        ending = stored["tables"].get("end", {}).get("ending", [""])[0]
        if ending in told or curve not in stored["tables"]:
            continue
        told.add(ending)
        tables = {**stored["tables"]}
        half = len(tables[curve]["update"]) // 2
        tables[curve] = {column: values[:half] for column, values in tables[curve].items()}
        checking.check_record(EXPERIMENTS, stored, "whole")
        with pytest.raises(record.RecordError, match=f"half: tables.{curve}.update: expected"):
            checking.check_record(EXPERIMENTS, {**stored, "tables": tables}, "half")
        halves += 1
    assert halves


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"])
def test_provenance_is_of_this_project_inside_a_hook(tmp_path, monkeypatch, name):
    """A hook of another repository sets these for what it calls."""
    before = code.git("rev-parse", "HEAD"), provenance.is_edited()
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    monkeypatch.setenv(name, str(tmp_path / {"GIT_DIR": ".git"}.get(name, "")))
    assert (code.git("rev-parse", "HEAD"), provenance.is_edited()) == before


def test_a_full_disk_does_not_end_a_lease(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record, "replace_with", full)
    with pytest.raises(record.WriteError, match=r"results\.tar\.xz: cannot be written \(No space"):
        lease.pack(tmp_path)


def test_a_line_has_an_end_and_no_commands_of_a_terminal():
    said = one_line(ValueError("\x1b[31m" + "x" * 100_000))
    assert len(said) < LONGEST + 100 and said.startswith("\\x1b[31m") and "100005" in said
