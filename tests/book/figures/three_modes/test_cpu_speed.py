"""One core's figure: its yardstick is counted as the chapter counts; nothing is said unmeasured."""

import pytest
import torch

from book.figures.lib import format
from book.figures.lib.records import NotMeasuredError
from book.figures.three_modes import cpu_speed
from experiments import cpu_speed as experiment
from experiments.harness.core.plan import Session
from tests.book.figures.made_up import made

pytestmark = pytest.mark.slow  # it times a run


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small run of the plan, and what it measured."""
    run, _ = experiment.runs("cpu", smoke=True)
    session = Session(
        device=torch.device("cpu"), corpus=lambda name: None, save=lambda tables: None,
        show=lambda *_: None, checkpoint=tmp_path_factory.mktemp("run") / "none",
    )  # fmt: skip
    return run, experiment.perform(run.config, session).tables


@pytest.fixture
def record(small, monkeypatch):
    """The small run, as `have` would find it."""
    run, tables = small
    record = made("cpu_speed", run.name, run.config, {**tables})
    _, token = experiment.runs("cpu", smoke=False)
    steps = {"step": ["torch chunked", "avx2 recurrent", "avx2 chunked"]}
    steps["seconds"] = [1e-5, 5e-5, 4e-5]
    of_token = {**record, "config": token.config, "tables": {"steps": steps}}
    monkeypatch.setattr(cpu_speed, "have", lambda name: [of_token, record])
    return record


def test_the_yardstick_is_the_operations_of_chunks_of_32_at_the_speed_of_a_product():
    point = {"heads": 3, "width": 64, "length": 128, "matmul": 1e9}
    pairs, states = 4 * 32 * 33 / 2, 2 * 128 * 64
    operations = 2 * 2 * 64 * pairs + 2 * 64 * states
    assert cpu_speed.as_product(point) == pytest.approx(3 * operations / 1e9)
    both = cpu_speed.as_product(point, "forward+backward")
    assert both == pytest.approx(9 * operations / 1e9)


def test_a_small_run_is_drawn_and_each_of_its_bodies_has_a_line(record):
    assert cpu_speed.figure()
    drawn = {keys["implementation"] for keys, _ in cpu_speed._curves(record)}
    named = record["tables"]["rows"]["implementation"]
    assert drawn == {cpu_speed.COLOURED.get(name, name) for name in named}
    assert drawn <= {*cpu_speed.IMPLEMENTATIONS}
    bodies = {step.split()[0] for step in record["tables"]["steps"]["step"]}
    cells = cpu_speed.step_table().cells
    assert [cell[0] for cell in cells] == [
        name for body, name in cpu_speed.BODIES.items() if body in bodies
    ]
    plain = cpu_speed.steps()["torch", "chunked"]
    assert cells[0][2] == format.duration_between(plain)
    with pytest.raises(NotMeasuredError):
        cpu_speed.share(8192)


def test_one_token_is_the_fastest_compiled_one_of_the_run_of_its_own(record):
    assert cpu_speed.numbers()["core_tick"] == format.duration(4e-5)


def test_a_body_whose_steps_were_stopped_half_way_has_no_line(record):
    steps = record["tables"]["steps"]
    record["tables"]["steps"] = {name: column[:3] for name, column in steps.items()}
    assert [cell[0] for cell in cpu_speed.step_table().cells] == ["plain PyTorch"]
