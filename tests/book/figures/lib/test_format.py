"""Timings as a sentence has them: with their quartiles, in one unit."""

from book.figures.lib.format import duration_between, times_between


def timing(seconds, low, high):
    return {"seconds": seconds, "low": low, "high": high}


def test_a_ratio_carries_what_the_quartiles_allow():
    slow, fast = timing(0.02, 0.018, 0.022), timing(0.01, 0.009, 0.012)
    assert times_between(slow, fast) == "2.0× (1.5–2.4)"
    assert times_between(timing(2.94, 2.6, 3.1), fast) == "290× (220–340)"


def test_a_time_and_its_quartiles_have_one_unit():
    assert duration_between(timing(1.165e-3, 0.995e-3, 1.238e-3)) == "1.17 ms (0.995–1.24)"
    assert duration_between(timing(2e-9, 1e-9, 3e-9)) == "2 ns (1–3)"
