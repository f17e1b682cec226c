"""Tables of the race: losses at equal minutes, runs of two processors, measured columns."""

import pytest

from book.figures.index import race
from book.figures.lib.records import NotMeasuredError
from book.figures.training import race_tables


def run(model, losses, *, processor="a cpu", seed=0, context=race.MAIN):
    device = {"kind": "cpu", "name": processor, "count": 1}
    return {
        "config": {
            "model": model, "seed": seed, "context": context, "updates": max(losses),
            "span": context, "spans": 2,
        },
        "tables": {"validation": {"update": [*losses], "loss": [*losses.values()]}},
        "complete": True,
        "provenance": {"device": device},
    }  # fmt: skip


@pytest.fixture
def raced(monkeypatch):
    """Have these runs stored, and these seconds of an update."""

    def store(runs, seconds):
        monkeypatch.setattr(race, "curves", lambda context: runs)
        for module in (race, race_tables):
            monkeypatch.setattr(module, "seconds", lambda model, context: seconds[model])
        monkeypatch.setattr(race_tables, "load", lambda experiment: runs)

    return store


@pytest.mark.parametrize(
    ("pace", "loss"),
    [
        (4.0, 2.5),  # ten updates in the time of linear's forty: on a validation
        (8 / 3, 2.25),  # fifteen: between the second and the third
        (1.0, 1.5),
        (0.5, 1.5),  # all of its updates, and time to spare
    ],
)
def test_softmax_is_told_where_it_is_when_linear_is_done(raced, pace, loss):
    softmax = run("softmax", {0: 5.5, 5: 3.0, 10: 2.5, 20: 2.0, 40: 1.5})
    raced([softmax, run("linear", {0: 5.5, 40: 1.0})], {"softmax": pace, "linear": 1.0})
    then = race.in_the_same_time(race.MAIN)
    assert then[:3] == (pytest.approx(40 / 60), pytest.approx(loss), 1.0)


def test_before_its_first_validation_nothing_is_known(raced):
    both = [run("softmax", {0: 5.5, 20: 2.0, 40: 1.5}), run("linear", {0: 5.5, 40: 1.0})]
    raced(both, {"softmax": 10.0, "linear": 1.0})
    with pytest.raises(NotMeasuredError, match="not validated by then"):
        race.in_the_same_time(race.MAIN)


def test_pairs_of_one_processor_are_told_from_others(raced):
    near = "softmax, near only"
    raced(
        [
            run("softmax", {0: 5.5, 4: 1.25}),
            run("softmax", {0: 5.5, 4: 1.5}, processor="another"),
            run(near, {0: 5.5, 4: 1.0}),
            run(near, {0: 5.5, 4: 0.5}, seed=1, processor="another"),
        ],
        {},
    )
    assert [*race_tables.far_head_on_one_processor().values()] == [0.25]
    assert race_tables.trained_twice() == [0.25]
    raced([], {})
    with pytest.raises(NotMeasuredError, match="no pair"):
        race_tables.far_head_on_one_processor()
    with pytest.raises(NotMeasuredError, match="no run"):
        race_tables.trained_twice()


def test_a_model_that_was_never_timed_has_no_column(raced, monkeypatch):
    raced([], {"softmax": 3.0, "linear": 1.5})
    timed = {name: {"seconds": 1.5, "low": 1.0, "high": 2.0} for name in ("softmax", "linear")}

    def speed(model, context):
        if model not in timed:
            raise NotMeasuredError(model)
        return timed[model]

    monkeypatch.setattr(race_tables, "speed", speed)
    table = race_tables.time_table()
    assert table.titles == ["context", "softmax", "linear", "ratio"]
    assert table.cells[0] == ["256", "1.50 ± 0.50", "1.50 ± 0.50", "2.0×"]
    timed["window"] = {"seconds": 0.5, "low": 0.5, "high": 0.5}
    assert race_tables.time_table().titles[-1] == "softmax, last 128"


def test_the_design_is_that_of_the_runs(raced):
    raced([run("softmax", {0: 5.5, 512: 2.0}), run("linear", {0: 5.5, 512: 2.0})], {})
    assert race_tables.design().cells[-1] == ["16,384", "512", "8,192", "4.2 million"]
