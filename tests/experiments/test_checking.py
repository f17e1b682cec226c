"""`check` and `collect` before results that were changed, misplaced or made to do harm."""

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from experiments.__main__ import main
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import checking, code, provenance, record
from experiments.harness.core.dictionary import dictionary

STORED = record.RESULTS / "loss_curves" / "cpu-amd-epyc-2" / "nano-linear-256.json"
# Of another commit, all code since would be compared.
HEAD = code.git("rev-parse", "HEAD") or "unknown"


def one(**changes):
    """A small sound record, changed: keys are paths with dots."""
    stored = record.read(STORED)
    stored["config"]["train_seconds"] = 0.3
    stored["provenance"]["commit"] = HEAD
    stored["tables"] = {
        "train": {"update": [1, 2, 3], "seconds": [0.1, 0.1, 0.1], "loss": [3.0, 2.0, 1.0]},
        "validation": {"update": [0, 3], "loss": [3.0, 1.0]},
    }
    for path, value in changes.items():
        *place, last = path.split("__")
        found = stored
        for key in place:
            found = found[key]
        if value is None:
            del found[last]
        else:
            found[last] = value
    return stored


def put(folder: Path, contents, name="nano-linear-256.json", where="loss_curves/cpu-amd-epyc-2"):
    path = folder / where / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(contents if isinstance(contents, str) else json.dumps(contents))
    return path


def check(folder, capsys):
    status = main(["check", str(folder)])
    said = capsys.readouterr()
    return status, said.err, said.out


def test_a_sound_result_is_called_so_and_its_age_is_told(tmp_path, capsys, monkeypatch):
    put(tmp_path, record.sign(one(provenance__code=code.code_digest("loss_curves"))))
    sound = "1 of 1 results are sound\n"
    assert check(tmp_path, capsys) == (0, "", sound)
    found = [code.Change(sha * 40, f"No {sha}", ("lsa/gpt.py", f"lsa/{sha}.py")) for sha in "ba"]
    monkeypatch.setattr(checking, "changes_since", lambda record: found)
    told = "loss_curves: the code of 1 of 1 results has changed since, last by bbbbbbbbbb No b\n"
    assert check(tmp_path, capsys) == (0, "", told + sound)
    assert main(["check", "--changes", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(told) and "experiments/reviewed.txt" in said
    assert "      1  aaaaaaaaaa No a\n         lsa/gpt.py, lsa/a.py\n" in said
    found = None
    status, errors, said = check(tmp_path, capsys)
    assert (status, errors) == (0, "") and said.endswith(sound)
    assert said.startswith("loss_curves: cannot tell whether the code of 1 of 1 results has")


@pytest.mark.slow
def test_a_result_that_was_stopped_early_is_sound(tmp_path, capsys):
    stopped = one(complete=False, config__updates=9, config__train_seconds=0.0)
    put(tmp_path, record.sign(stopped), "nano-linear-256.partial.json")
    status, errors, said = check(tmp_path, capsys)
    assert (status, errors) == (0, "") and said.endswith("1 of 1 results are sound\n")


FUTURE = "2999-01-01T00:00:00+00:00"
FIRST = "0001-01-01T00:00:00+23:59"
LEG = {"commit": "unknown", "dirty": True, "started": FUTURE, "seconds": 1.0}
PAST = {**LEG, "started": "2026-01-01T00:00:00+00:00"}
DEEP = '{"schema": 2, "config": ' + "[" * 100_000 + "]" * 100_000 + "}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tables__train__loss": [3.0, 2.0, 0.5]}, "digest: the contents are not those"),
        ({"provenance__commit": "0" * 40}, "provenance.commit: 000000000000 is not in the history"),
        ({"experiment": "loss_curve"}, "experiment: there is no 'loss_curve'"),
        ({"experiment": "variants"}, "tables.end: expected rows, got none"),
        (
            {"name": "nano-linear-512"},
            "cpu-amd-epyc-2/nano-linear-512.json, by its own",
        ),
        ({"provenance__device__count": 4}, "expected at loss_curves/cpu-amd-epyc-4/"),
        ({"tables__validation": {}}, "tables.validation: expected rows, got none"),
        ({"tables__train__seconds": None}, "tables.train: expected the columns update, seconds"),
        ({"tables__more": {"update": [1]}}, "tables.more: expected one of train, validation"),
        ({"tables__train__update": [1, 3, 2]}, "tables.train.update: expected increasing values"),
        ({"tables__train": [1]}, "tables[...]: expected `object`, got `array`"),
        ({"units__loss": "bits"}, "units.loss: expected 'nats/token', got 'bits'"),
        ({"provenance__started": FUTURE}, "provenance.started: expected the past, got 2999"),
        (
            {"provenance__legs": [LEG]},
            "provenance.started: expected the past, got 2999",
        ),
        (
            {"tables__validation__update": [0, 2.5]},
            "validation.update[1]: expected `float` that's a multiple of 1.0",
        ),
        ({"provenance__legs": [{}]}, "provenance.legs[0]: object missing required field `commit`"),
        ({"provenance__legs": [PAST]}, "provenance.legs: expected seconds that add up to"),
        ({"provenance__started": FIRST}, "provenance.started: expected 2020 or later, got 0001"),
        ({"config__seed": 99}, "config.seed: expected that of the provenance, 0, got 99"),
        ({"config": {"nonsense": 1}}, "config: expected attention, context, corpus, learning_rate"),
    ],
)
def test_what_is_wrong_with_a_result_is_one_line(tmp_path, capsys, changes, message):
    contents = one(**changes)
    # Only a slip of the hand leaves the digest behind; the rest is wrong although it is signed.
    put(tmp_path, contents if "digest" in message else record.sign(contents))
    status, errors, said = check(tmp_path, capsys)
    assert status == 1 and message in errors and errors.count("\n") == 1
    assert "0 of 1 results are sound" in said


@pytest.mark.parametrize("text", [DEEP, "", "[]", '{"schema": 1' + "0" * 5000 + "}", "\0"])
def test_what_is_no_record_at_all_is_one_line(tmp_path, capsys, text):
    put(tmp_path, text)
    status, errors, _ = check(tmp_path, capsys)
    assert status == 1 and errors.count("\n") == 1


@pytest.mark.parametrize("verb", ["check", "collect"])
def test_a_pipe_in_the_folder_is_not_waited_for(tmp_path, capsys, verb):
    path = put(tmp_path, "")
    path.unlink()
    os.mkfifo(path)
    assert main([verb, str(tmp_path)]) == 1
    said = capsys.readouterr().err
    told = f"{path}: expected a regular file" if verb == "check" else "no result files in it"
    assert told in said and said.count("\n") == 1


def test_a_table_whose_rows_all_stand_twice_is_found(tmp_path, capsys):
    stored = next(record.paths(record.RESULTS, "rnn_orders"))
    contents = record.read(stored)
    rows = contents["tables"]["rows"]
    contents["tables"]["rows"] = {
        name: [value for value in column for _ in range(2)] for name, column in rows.items()
    }
    put(tmp_path, record.sign(contents), stored.name, f"rnn_orders/{stored.parent.name}")
    status, errors, _ = check(tmp_path, capsys)
    assert status == 1 and "tables.rows: expected rows" in errors


def test_the_same_run_twice_is_found_by_its_name(tmp_path, capsys):
    put(tmp_path, record.sign(one()))
    put(tmp_path, record.sign(one()), name="nano-linear-256-again.json")
    put(tmp_path, record.sign(one()), where="loss_curves/cpu-another-2")
    status, errors, said = check(tmp_path, capsys)
    assert status == 1 and errors.count("expected at") == 2 and "1 of 3" in said


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../../../elsewhere"},
        {"experiment": ".."},
        {"experiment": "/tmp"},
        {"name": "/tmp/elsewhere"},
        {"provenance__device__count": "/../../.."},
        {"provenance__device__kind": "../.."},
    ],
)
def test_nothing_is_collected_outside_the_folder(tmp_path, capsys, changes):
    put(tmp_path / "new", record.sign(one(**changes)))
    out = tmp_path / "a" / "b" / "out"
    assert main(["collect", str(tmp_path / "new"), "--out", str(out)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not [path for path in (tmp_path / "a").rglob("*") if path.is_file()]


@pytest.mark.parametrize("dirty", [True, False])
def test_a_result_of_edited_code_is_named_as_it_comes_home(tmp_path, capsys, dirty):
    put(tmp_path / "new", record.sign(one(provenance__dirty=dirty)))
    assert main(["collect", str(tmp_path / "new"), "--out", str(tmp_path / "out")]) == 0
    assert ("(`dirty`: not made by" in capsys.readouterr().out) is dirty


def test_a_link_in_the_folder_does_not_lead_out_of_it(tmp_path, capsys):
    put(tmp_path / "new", record.sign(one()))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "loss_curves").symlink_to(tmp_path / "elsewhere")
    assert main(["collect", str(tmp_path / "new"), "--out", str(tmp_path / "out")]) == 1
    assert "leads out of" in capsys.readouterr().err
    assert not list((tmp_path / "elsewhere").iterdir())


def test_flipped_bytes_in_an_archive_are_one_line(tmp_path, capsys):
    put(tmp_path / "new", record.sign(one(config={str(i): i for i in range(3000)})))
    for kind in ("gz", "xz", "bz2"):
        archive = tmp_path / f"a.tar.{kind}"
        with tarfile.open(archive, f"w:{kind}") as tar:
            tar.add(tmp_path / "new", "new")
        raw = bytearray(archive.read_bytes())
        for i in range(len(raw) // 2, len(raw) // 2 + 20):
            raw[i] ^= 0xFF
        archive.write_bytes(raw)
        assert main(["collect", str(archive), "--out", str(tmp_path / "out")]) == 1
        assert capsys.readouterr().err.count("\n") == 1


def spoiled_member(how):
    member = tarfile.TarInfo("a.json")
    member.size = 1
    if how in ("link to nothing", "link to itself"):
        member.type, member.size = tarfile.LNKTYPE, 0
        member.linkname = "a.json" if "itself" in how else "nowhere"
    elif how == "newline":
        member.name = "a\nb.json"
    else:
        member.pax_headers = dict([how])
    return member


@pytest.mark.parametrize(
    "how",
    [
        "link to nothing",
        "link to itself",
        "newline",
        ("mtime", "nan"),
        ("mtime", "inf"),
        ("path", "a\0b.json"),
        ("GNU.sparse.map", "x,y"),
    ],
    ids=str,
)
def test_an_odd_member_of_an_archive_is_one_line(tmp_path, capsys, how):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.addfile(spoiled_member(how), io.BytesIO(b"{"))
    assert main(["collect", str(tmp_path / "a.tar"), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_links_to_itself_is_one_line(tmp_path, capsys):
    put(tmp_path / "new", record.sign(one()))
    (tmp_path / "out").symlink_to(tmp_path / "out")
    assert main(["collect", str(tmp_path / "new"), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_dictionary_is_made_of_what_experiments_declare():
    kept = (record.RESULTS / "README.md").read_text(encoding="utf-8")
    assert kept == dictionary(EXPERIMENTS), "run python -m experiments describe"
    meanings = [
        column.meaning
        for experiment in EXPERIMENTS.values()
        for table in experiment.tables.values()
        for column in table.columns.values()
    ]
    assert all(meanings)


def test_a_copy_inside_another_repository_names_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(code, "ROOT", record.ROOT / "lsa")  # a folder of a repository, not its root
    assert code.git("rev-parse", "HEAD") is None
    monkeypatch.setattr(provenance, "code_digest", lambda experiment: "0" * 64)
    found = provenance.provenance(provenance.torch.device("cpu"), "loss_curves", 0)
    assert (found["commit"], found["dirty"]) == ("unknown", True)


def test_an_experiments_code_is_what_it_imports():
    names = code.code_files(code.worktree(), "loss_curves", kernels=False)
    training = "experiments/harness/learning/training.py"
    assert {"experiments/loss_curves.py", training, "lsa/gpt.py", "lsa/layers/s4.py"} <= names
    assert "lsa/attention/reference.py" in names  # which went unseen once
    assert not {"experiments/mode_speed.py", "experiments/harness/core/runner.py"} & names
    assert not any("triton" in name for name in names)
    assert "lsa/attention/triton/tiles.py" in code.code_files(
        code.worktree(), "loss_curves", kernels=True
    )
