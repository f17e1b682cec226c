"""What is said of states and maps follows the stored losses and the spread over seeds."""

import pytest

from book.figures.training import state_size, state_tables
from book.figures.training.state_size import Arm

PLAIN, ELU = Arm("Taylor 2"), Arm("elu + 1")


@pytest.fixture
def trained(monkeypatch):
    """Have these last losses stored: {arm: {seed: loss}}."""

    def store(ends, states=None):
        runs = []
        for arm, seeds in ends.items():
            for seed, loss in seeds.items():
                attention = {"elu + 1": "linear", "none": "none", "softmax": "softmax"}
                config = {
                    **arm._asdict(), "seed": seed, "updates": 8, "attention_options": {},
                    "attention": attention.get(arm.weights, "taylor"),
                }  # fmt: skip
                tables = {
                    "validation": {"update": [0, 2, 4, 6, 8], "loss": [5.5, 4.0, 3.0, 2.9, loss]},
                    "model": {"state": [(states or {}).get(arm, 1000)], "parameters": [1]},
                    "attended": {
                        "update": [0, 0, 8, 8], "layer": [0, 1, 0, 1], "head": [0] * 4,
                        "effective": [100.0, 100.0, 10.0, 40.0], "alike": [100.0] * 4,
                        "moved": [0.0, 0.0, 0.5, 0.7],
                    },
                }  # fmt: skip
                runs.append({"name": "x", "path": "x", "config": config, "tables": tables})
        monkeypatch.setattr(state_size, "learned", lambda experiment: runs)
        monkeypatch.setattr(state_size, "provenance", lambda records: [])

    return store


def test_a_gap_is_the_mean_over_the_seeds_of_both(trained):
    trained({PLAIN: {0: 2.25, 1: 2.27}, ELU: {0: 2.23, 1: 2.24, 2: 9.0}})
    found = state_tables.gap("Taylor 2")
    assert found[:4] == (pytest.approx(0.025), pytest.approx(0.005), 2, 2)


def test_tokens_are_those_of_heads_that_see_far(trained):
    trained({PLAIN: {0: 2.0}})
    assert state_size.attention(PLAIN) == (pytest.approx(20), 10)


def test_the_figure_has_a_dot_an_arm_and_a_control_as_a_line(trained):
    small, large = Arm("elu + 1", "fades", 8), Arm("Taylor 2", "fades")
    none, near = Arm("none", "fades"), Arm("elu + 1", "fades", change="near only")
    ends = {small: {0: 2.0, 1: 2.1}, large: {0: 2.3, 1: 2.3}}
    controls = {none: {0: 2.5, 1: 2.5}, near: {0: 2.4, 1: 2.4}}
    trained(ends | controls, {small: 1000, large: 10**6, none: 0, near: 1000})
    figure = state_size.figure()
    dots = [c for c in figure.curves if c.role == "series" and c.keys["part"] == "4"]
    assert {c.name: c.columns["loss"] for c in dots} == {
        "elu + 1, 8 heads": [2.05], "Taylor 2, 2 heads": [2.3],
    }  # fmt: skip
    (line,) = (c for c in figure.curves if c.role == "ceiling" and c.keys["part"] == "4")
    assert line.columns["loss"] == [2.4, 2.4]
    assert "ends at 2.500 (1,024 bytes)" in figure.caption
    assert "Two seeds each" in figure.caption
