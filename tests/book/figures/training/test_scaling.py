"""Sizes and rates are compared in pairs, with seeds for units."""

import pytest

from book.figures.lib.format import NOT_MEASURED
from book.figures.training import scaling, scaling_rates

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
                        "span": 1000, "spans": 2, "shape": {"d_model": 64},
                        "attention_options": {"log_decay": [-0.2, 0.0]},
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


def test_rates_are_compared_in_pairs_and_with_the_usual_one(trained, monkeypatch):
    at_rates(trained, monkeypatch, dict(zip(RATES, (2.01, 1.95, 1.92), strict=True)))
    assert [round(found.mean, 3) for found in scaling_rates.behind()] == [0.01, -0.05, -0.08]
    assert scaling_rates.table().cells[-1][-1] == "−0.080 ± 0.000"
    assert scaling_rates.rise("linear", scaling_rates.TWICE).mean == pytest.approx(-0.03)
    assert [cells[0] for cells in scaling_rates.table().cells] == [
        "half",
        scaling_rates.USUAL,
        "twice",
    ]


def test_rates_are_compared_on_the_same_seeds(trained, monkeypatch):
    at_rates(trained, monkeypatch, dict.fromkeys(RATES, 1.9), seeds=(1,))
    assert {found.count for found in scaling_rates.behind()} == {1}
    at_rates(trained, monkeypatch, dict.fromkeys(RATES, 1.9), seeds=())
    assert scaling_rates.numbers()["rates_linear_twice"] == NOT_MEASURED


def test_sizes_from_one_on_are_told_together(trained):
    trained(lambda attention, n, seed: 2 - 0.05 * (attention == "linear" and n > 4e5), BOTH)
    assert scaling.numbers()["scaling_of"] == "6 of 6"
    assert scaling.behind(scaling.LARGE).mean == pytest.approx(-0.05)
    assert scaling.behind().count == 2
    assert scaling.smallest(2) == [[0, 0], [0, 0]]


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
