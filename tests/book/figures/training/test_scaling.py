"""The exponents of scaling are those of the data, and attentions are compared in pairs."""

import pytest

from book.figures.lib.format import NOT_MEASURED
from book.figures.lib.records import NotMeasuredError
from book.figures.training import power_law, scaling, scaling_rates

SIZES = {"0.1M": 1e5, "0.2M": 2e5, "0.5M": 5e5, "0.8M": 8e5, "1.6M": 1.6e6}


@pytest.fixture
def trained(monkeypatch):
    """Have these last losses stored: loss(attention, parameters, seed), for seeds of each."""

    def store(loss, seeds, sizes=SIZES):
        runs = []
        for attention in scaling.ATTENTIONS:
            for size, parameters in sizes.items():
                for seed in seeds[attention]:
                    config = {
                        "attention": attention, "size": size, "seed": seed, "updates": 4,
                        "span": 1000, "spans": 2,
                    }  # fmt: skip
                    end = loss(attention, parameters, seed)
                    tables = {
                        "validation": {"update": [0, 2, 4], "loss": [5.5, end + 1, end]},
                        "model": {
                            "parameters": [parameters], "flops": [6 * parameters], "state": [1]
                        },
                    }  # fmt: skip
                    runs.append({"name": size, "path": "x", "config": config, "tables": tables})
        monkeypatch.setattr(scaling, "learned", lambda experiment: runs)
        monkeypatch.setattr(scaling, "provenance", lambda records: [])

    return store


BOTH = {"softmax": (0, 1), "linear": (0, 1)}


def test_a_power_law_is_found_again(trained):
    alpha = {"softmax": 0.08, "linear": 0.05}
    trained(lambda attention, n, seed: 9 * n ** -alpha[attention], BOTH)
    for attention, wanted in alpha.items():
        found = scaling.exponent(attention)
        assert found.exponent == pytest.approx(wanted)
        assert found.wide == pytest.approx(0, abs=1e-9)
    assert scaling.difference().exponent == pytest.approx(-0.03)
    assert scaling.numbers()["scaling_difference"] == "0.0300 ± 0.0000"
    assert scaling.numbers()["scaling_softmax"] == "−0.080 ± 0.000"


RATES = {"half the rate": 1e-3, scaling_rates.USUAL: 2e-3, "twice the rate": 4e-3}


def at_rates(trained, monkeypatch, linear, seeds=(0, 1)):
    """The largest size at several rates: softmax ends at 2, linear at `linear[rate]`."""
    ends = {"softmax": 2.0, "linear": linear[scaling_rates.USUAL]}
    trained(lambda attention, n, seed: ends[attention], BOTH, {"2.7M": 2.7e6})
    runs = scaling.learned("scaling")
    for run in runs:
        run["config"]["learning_rate"] = RATES[scaling_rates.USUAL]
    for change, rate in RATES.items():
        for run in list(runs) if change != scaling_rates.USUAL else ():
            config = {**run["config"], "learning_rate": rate, "change": change}
            if "change" in run["config"] or config["seed"] not in seeds:
                continue
            end = 2.0 if config["attention"] == "softmax" else linear[change]
            tables = {**run["tables"], "validation": {"update": [0, 4], "loss": [5.5, end]}}
            runs.append({**run, "config": config, "tables": tables})
    monkeypatch.setattr(scaling, "learned", lambda experiment: runs)


def test_other_rates_are_no_further_seeds(trained, monkeypatch):
    at_rates(trained, monkeypatch, dict(zip(RATES, (1.5, 1.9, 1.6), strict=True)))
    assert scaling.behind()[:4] == (pytest.approx(-0.1), 0, 2, 2)


def test_rates_are_compared_in_pairs_and_the_best_is_that_of_the_mean(trained, monkeypatch):
    at_rates(trained, monkeypatch, dict(zip(RATES, (2.01, 1.95, 1.92), strict=True)))
    assert [round(found.mean, 3) for found in scaling_rates.behind()] == [0.01, -0.05, -0.08]
    assert scaling_rates.numbers()["rates_of"] == "4 of 6"
    assert scaling_rates.best_rate("linear") == "twice the rate"
    assert [cells[0] for cells in scaling_rates.table().cells] == [
        "half",
        scaling_rates.USUAL,
        "twice",
    ]


def test_rates_are_compared_on_the_same_seeds(trained, monkeypatch):
    at_rates(trained, monkeypatch, dict.fromkeys(RATES, 1.9), seeds=(1,))
    assert {found.count for found in scaling_rates.behind()} == {1}
    at_rates(trained, monkeypatch, dict.fromkeys(RATES, 1.9), seeds=())
    assert scaling_rates.numbers()["rates_of"] == NOT_MEASURED


def test_sizes_from_one_on_are_told_together(trained):
    trained(lambda attention, n, seed: 2 - 0.05 * (attention == "linear" and n > 4e5), BOTH)
    assert scaling.numbers()["scaling_of"] == "6 of 6"
    assert scaling.behind(scaling.LARGE).mean == pytest.approx(-0.05)
    assert scaling.smallest(2) == [[0, 0], [0, 0]]


def test_the_interval_is_that_of_a_line_through_few_points():
    """Worked by hand: residuals (1, -2, 1) / 10 about a line of slope 0 in logarithms."""
    from math import exp, sqrt

    found = power_law.fit([exp(-1), 1, exp(1)], [exp(0.1), exp(-0.2), exp(0.1)])
    assert found.exponent == pytest.approx(0)
    assert found.wide == pytest.approx(12.71 * sqrt(0.06 / 1 / 2))
    two = power_law.fit([1, 10], [2, 1])
    assert two.wide is None
    with pytest.raises(NotMeasuredError, match="no two sizes"):
        power_law.fit([1, 1], [2, 1])


def test_both_attentions_are_compared_on_the_seeds_that_both_have(trained):
    trained(lambda attention, n, seed: 2 + seed, {"softmax": (0, 1, 2), "linear": (1,)})
    assert {len(losses) for *_, losses in scaling.points("softmax")} == {1}
    assert scaling.points("softmax") == scaling.points("linear")
    assert "One seed." in scaling.figure().caption


def test_one_size_is_drawn_without_a_law(trained):
    trained(lambda *_: 2.0, BOTH, {"0.8M": 8e5})
    figure = scaling.figure()
    assert "Dashed" not in figure.caption
    assert not [curve for curve in figure.curves if curve.role == "ceiling"]
