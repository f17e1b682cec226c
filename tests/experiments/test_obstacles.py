"""What lies where a file should: a run goes on past it or says so in a line, and keeps it."""

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import record, runner
from experiments.harness.core.provenance import describe_device
from tests.experiments.command import smoke


@pytest.fixture
def place(tmp_path):
    """Where the record of a short run is to lie, in its folder."""
    device = runner.find_device("cpu")
    (run,) = runner.plan(EXPERIMENTS, ["rnn_orders"], "cpu", smoke=True)
    path = record.path_of(tmp_path / "out", run.experiment, describe_device(device), run.name)
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("where", ["lock", "device"])
def test_what_is_in_the_way_of_a_run_is_one_line_and_others_have_theirs(
    place, tmp_path, capsys, where
):
    if where == "lock":
        where = place.parent.parent / f".{place.parent.name}-{place.name}.lock"
        where.mkdir()
    else:
        where = place.parent
        where.rmdir()
        where.write_text("")
    assert smoke(tmp_path, "rnn_orders", "taylor_error") == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said and f"{where}" in said
    assert "1 new result under" in said and "broke off: rnn_orders" in said


def test_a_partial_record_that_cannot_be_signed_is_set_aside(place, tmp_path, capsys):
    record.partial_path(place).write_text('{"schema": 1, "x": 1e999}')
    assert smoke(tmp_path, "rnn_orders") == 0
    said = capsys.readouterr().err
    assert "set aside as" in said and "Traceback" not in said


def test_a_result_that_is_stored_is_not_lost_to_what_cannot_be_removed(
    place, tmp_path, monkeypatch, capsys
):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("experiments.harness.core.run_files.Path.unlink", refused)
    assert smoke(tmp_path, "rnn_orders") == 0
    said = capsys.readouterr()
    assert "1 new result under" in said.out and "cannot be removed" in said.err
