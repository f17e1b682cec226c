"""What is said of the race follows the seeds: the same for both attentions, pair by pair."""

import pytest

from book.figures.index import race, race_words
from book.figures.lib.records import NotMeasuredError
from book.figures.linear_self_attention import variants
from book.figures.training import far_head


@pytest.fixture
def raced(monkeypatch):
    """Have these last losses stored: {model: {seed: loss}}, at one context after the other."""
    stored = {}

    def store(ends, at=race.MAIN):
        stored[at] = [
            {
                "config": {"model": model, "seed": seed, "context": at},
                "tables": {"validation": {"update": [0, 1], "loss": [5.0, loss]}},
            }
            for model, seeds in ends.items()
            for seed, loss in seeds.items()
        ]
        monkeypatch.setattr(race, "curves", lambda context: stored.get(context, []))
        monkeypatch.setattr(variants, "seed_spread", lambda: 0.03)

    return store


def test_attentions_are_compared_on_the_seeds_that_both_have(raced):
    raced({"softmax": {0: 1.6, 1: 1.7}, "linear": {1: 1.75, 0: 1.62, 2: 9.0}})
    assert race.ends("linear", race.MAIN) == [1.62, 1.75]
    assert race_words.behind(race.MAIN) == pytest.approx((0.02 + 0.05) / 2)
    assert race.spread(race.MAIN) == pytest.approx(0.13)
    assert race_words.noise(race.MAIN) == pytest.approx(0.13)
    assert "cannot be told apart: 0.035 nats are between their ends in the mean of two seeds" in (
        race_words._of_updates(race.MAIN)
    )


def test_a_control_with_fewer_seeds_is_compared_on_those(raced):
    raced({
        "softmax": {0: 1.5, 1: 1.9}, "linear": {0: 1.5, 1: 1.9}, "softmax, near only": {1: 2.0},
        "linear, near only": {7: 2.0},
    })  # fmt: skip
    assert far_head.worth("softmax", race.MAIN) == pytest.approx(0.1)
    with pytest.raises(NotMeasuredError):
        far_head.worth("linear", race.MAIN)


def test_one_seed_takes_its_noise_from_other_models(raced):
    raced({"softmax": {0: 1.5}, "linear": {0: 1.6}})
    with pytest.raises(NotMeasuredError, match="one seed"):
        race.spread(race.MAIN)
    assert race_words.noise(race.MAIN) == 0.03
    assert race_words._of_updates(race.MAIN).startswith("softmax is ahead, by 0.100 nats, where")


def near(of, by):
    """Pairs of runs: those of `of`, and by how many nats more their partners end, by seed."""
    ends = {name: dict.fromkeys(seeds, 1.6) for name, seeds in of.items()}
    return ends | {
        f"{name}, near only": {seed: 1.6 + gap for seed, gap in zip(seeds, by, strict=True)}
        for name, seeds in of.items()
    }


def test_the_far_head_is_judged_against_the_noise(raced):
    raced(near({"softmax": (0, 1), "linear": (0, 1)}, by=(-0.01, -0.02)))
    assert far_head.verdict(race.MAIN).startswith("nothing that can be told from the noise")
    raced(near({"softmax": (0, 1), "linear": (0, 1)}, by=(0.1, 0.1)))
    assert far_head.verdict(race.MAIN) == (
        "that with it the loss ends 0.100 nats lower with softmax attention and 0.100 nats lower "
        "with linear attention"
    )


def test_pairs_of_all_contexts_are_counted_together(raced):
    with pytest.raises(NotMeasuredError, match="far head"):
        raced({"softmax": {0: 1.6}, "linear": {0: 1.6}})
        far_head.together()
    raced(near({"softmax": (0, 1), "linear": (0, 1)}, by=(-0.01, -0.02)))
    raced(near({"linear": (0,)}, by=(-0.03,)), at=16384)
    assert far_head.together() == (
        "In all 5 pairs the run without the far head ends lower; the mean over all pairs is "
        "0.018 nats lower"
    )
    raced(near({"linear": (0,)}, by=(0.05,)), at=16384)
    assert far_head.together().startswith("In 4 of the 5 pairs")
    told = "−0.015 (−0.020 to −0.010)"
    assert repr(far_head.table()).splitlines()[2:] == [
        f"| 4,096 | {told} | {told} |", "| 16,384 | – | +0.050 (one seed) |"
    ]  # fmt: skip
    assert far_head.beyond_the_noise() == (
        "Of these differences only that of linear attention at 16,384 bytes (0.050, one seed) is "
        "larger than what another seed does to a run, 0.030 nats"
    )
    raced(near({"linear": (0,)}, by=(0.02,)), at=16384)
    assert far_head.beyond_the_noise().startswith("None of these")
