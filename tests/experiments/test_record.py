"""Results are written whole or not at all, and everything wrong with one is said by name."""

import copy
import json
import os

import pytest

from experiments.harness.core import record


def good():
    return {
        "schema": 2,
        "experiment": "loss_curves",
        "name": "nano-linear-64",
        "config": {"scale": "nano"},
        "complete": True,
        "provenance": {
            "commit": "0" * 40,
            "dirty": False,
            "command": "python -m experiments run",
            "started": "2026-01-01T00:00:00+00:00",
            "seconds": 1.0,
            "seed": 0,
            "device": {"kind": "cpu", "name": "A CPU", "count": 2, "memory_bytes": 1},
            "versions": {"torch": "2"},
        },
        "units": {"seconds": "s", "loss": "nats/token", "mode": "name"},
        "tables": {"train": {"seconds": [0.5, 0.25], "loss": [2.0, -1.5], "mode": ["a", "b"]}},
    }


def test_what_is_written_is_read_back(tmp_path):
    path = record.path_of(tmp_path, "loss_curves", good()["provenance"]["device"], good()["name"])
    assert path == tmp_path / "loss_curves" / "cpu-a-cpu-2" / "nano-linear-64.json"
    record.write(path, good())
    assert record.read(path) == record.sign(good())
    (loaded,) = record.load("loss_curves", tmp_path)
    assert loaded["tables"] == good()["tables"]
    assert [p.name for p in path.parent.iterdir()] == ["nano-linear-64.json"]
    # One line a column: a difference between two runs can be read.
    assert '"seconds": [0.5, 0.25],\n' in path.read_text()


def change(path, value):
    contents = copy.deepcopy(good())
    place = contents
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return contents


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["schema"], 99, "schema: invalid enum value 99"),
        (["units"], None, "record: object missing required field `units`"),
        (["complete"], "yes", "complete: expected `bool`, got `str`"),
        (["provenance", "commit"], None, "provenance: object missing required field `commit`"),
        (["provenance", "device", "name"], None, "provenance.device: object missing required"),
        (["tables", "train", "seconds"], [0.5, -0.1], r"tables.train.seconds\[1\]: .* >= 0"),
        (
            ["tables", "train", "loss"],
            [None, 1.0],
            r"tables.train.loss\[0\]: .*, got `null`",
        ),
        (
            ["tables", "train", "loss"],
            [1e300, 1.0],
            r"tables.train.loss\[0\]: .* <= 1e\+100",
        ),
        (["tables", "train", "loss"], "ab", r"tables\[...\]\[...\]: expected `array`, got `str`"),
        (["tables", "train", "loss"], ["a", 1.0], r"tables.train.loss\[0\]: expected `float`"),
        (
            ["tables", "train", "mode"],
            [1, "b"],
            r"tables.train.mode\[0\]: .*, got `int`",
        ),
        (["tables", "train"], {"loss": []}, "tables: expected rows, got none"),
        (["name"], "../../elsewhere", "name: expected `str` matching"),
        (["experiment"], "/tmp/elsewhere", "experiment: expected `str` matching"),
        (["config"], {}, "config: expected `object` of length >= 1"),
        (["provenance", "versions"], {}, "provenance.versions: expected `object` of length >= 1"),
        (["more"], 1, "more: not a field"),
        (["provenance", "more"], 1, "provenance.more: not a field"),
        (["provenance", "seconds"], "soon", "provenance.seconds: expected `float`, got `str`"),
        (["provenance", "commit"], "main", "provenance.commit: expected `str` matching"),
        (["provenance", "commit"], "unknown", "provenance.dirty: expected true where the commit"),
        (["provenance", "started"], "today", "provenance.started: expected `str` matching"),
        (["provenance", "device", "count"], "../2", "provenance.device.count: expected `int`"),
        (["provenance", "device", "count"], 0, "provenance.device.count: expected `int` >= 1"),
        (
            ["provenance", "device", "name"],
            "...",
            "provenance.device.name: .* matching",
        ),
        (["tables", "train", "loss"], [1.0], "tables.train: columns differ in length"),
        (["units", "loss"], None, "tables.train.loss: no unit"),
        (["provenance", "device", "name"], "a" * 101, "provenance.device.name: .* length <= 100"),
        (["provenance", "code"], "zzz", "provenance.code: expected `str` matching"),
        (["provenance", "corpus"], "novels", "provenance.corpus: expected `str` matching"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, path, value, message):
    file = tmp_path / "x.json"
    with pytest.raises(record.RecordError, match=f"x.json: {message}"):
        record.write(file, change(path, value))
    assert not file.exists()
    file.write_text(json.dumps(change(path, value)))
    with pytest.raises(record.RecordError, match=message):
        record.read(file)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["tables", "train", "loss"], [float("nan"), 1.0]),
        (["tables", "train", "loss"], [10**400, 1.0]),
        (["tables", "train", "mode"], ["\ud800", "b"]),
        (["config", "scale"], float("inf")),
        (["config", "x"], ["a", "\ud800"]),
        (["config", "\udfff"], 1),
    ],
)
def test_what_json_in_utf_8_cannot_hold_is_neither_written_nor_read(tmp_path, path, value):
    file = tmp_path / "x.json"
    with pytest.raises(record.RecordError, match="x.json: "):
        record.write(file, change(path, value))
    assert not file.exists()
    file.write_text(json.dumps(change(path, value)))
    with pytest.raises(record.RecordError, match="x.json: "):
        record.read(file)


def test_a_name_may_have_a_hundred_characters(tmp_path):
    named = {**change(["provenance", "device", "name"], "a" * 100), "name": "b" * 100}
    record.write(tmp_path / "x.json", named)
    with pytest.raises(record.RecordError, match="name: expected `str`"):
        record.write(tmp_path / "y.json", {**named, "name": "b" * 101})


def test_a_truncated_file_is_named(tmp_path):
    file = tmp_path / "x.json"
    record.write(file, good())
    file.write_text(file.read_text()[:-40])
    with pytest.raises(record.RecordError, match="x.json: not a whole JSON file"):
        record.read(file)
    with pytest.raises(record.RecordError, match="x.json: record: expected `object`, got `array`"):
        file.write_text("[]")
        record.read(file)


def test_a_full_disk_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    file = tmp_path / "x.json"
    record.write(file, good())

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(record.RecordError, match="No space left on device.*--out"):
        record.write(file, {**good(), "name": "other"})
    assert record.read(file) == record.sign(good())
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_a_partial_record_steps_back_for_a_whole_one(tmp_path):
    path = record.path_of(tmp_path, "e", good()["provenance"]["device"], good()["name"])
    record.write(record.partial_path(path), {**good(), "experiment": "e", "complete": False})
    assert [r["complete"] for r in record.load("e", tmp_path)] == [False]
    assert record.load("e", tmp_path, partial=False) == []
    record.write(path, {**good(), "experiment": "e"})
    assert [r["complete"] for r in record.load("e", tmp_path)] == [True]


def test_a_file_is_parsed_once_and_again_when_it_changes(tmp_path, monkeypatch):
    path = record.path_of(tmp_path, "e", good()["provenance"]["device"], good()["name"])
    record.write(path, {**good(), "experiment": "e"})
    read, reads = record.read, []
    monkeypatch.setattr(record, "read", lambda path: reads.append(path) or read(path))
    (first,), (second,) = (record.load("e", tmp_path) for _ in range(2))
    assert len(reads) == 1 and first is second
    record.write(path, {**good(), "experiment": "e", "config": {"scale": "124M"}})
    (changed,) = record.load("e", tmp_path)
    assert changed["config"] == {"scale": "124M"}


def test_every_stored_result_is_sound():
    assert record.load() or not any(record.RESULTS.glob("*/*/*.json"))
