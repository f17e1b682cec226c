"""What is said of the race follows the seeds: the same for both attentions, pair by pair."""

import pytest

from book.figures import race, race_words, variants
from book.figures.results import NotMeasuredError


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
    assert race_words.far_head("softmax", race.MAIN) == pytest.approx(0.1)
    with pytest.raises(NotMeasuredError):
        race_words.far_head("linear", race.MAIN)


def test_one_seed_takes_its_noise_from_other_models(raced):
    raced({"softmax": {0: 1.5}, "linear": {0: 1.6}})
    with pytest.raises(NotMeasuredError, match="one seed"):
        race.spread(race.MAIN)
    assert race_words.noise(race.MAIN) == 0.03
    assert race_words._of_updates(race.MAIN).startswith("softmax is ahead, by 0.100 nats, where")


@pytest.mark.parametrize(("last", "agreed"), [(1.59, True), (1.61, False)])
def test_seeds_that_all_agree_are_told_even_below_the_noise(raced, last, agreed):
    ends = {name: {0: 1.6, 1: 1.6} for name in ("softmax", "linear")}
    near = {f"{name}, near only": {0: 1.58, 1: 1.59} for name in ends}
    near["linear, near only"][1] = last
    raced(ends | near)
    said = race_words._of_the_far_head(race.MAIN)
    assert said.startswith("nothing that can be told from the noise")
    told = "; yet every seed of either ends lower without it, by 0.010 to 0.020"
    assert said.endswith(told) is agreed


def test_the_far_head_is_judged_wherever_its_controls_are(raced):
    ends = {name: {0: 1.6, 1: 1.6} for name in ("softmax", "linear")}
    near = {f"{name}, near only": {0: 1.7, 1: 1.7} for name in ends}
    raced(ends | near)
    with pytest.raises(NotMeasuredError, match="another context"):
        race_words._of_the_far_head_elsewhere()
    raced(ends | near, at=1024)
    raced(ends | {"softmax, near only": {0: 1.7}}, at=256)
    assert race_words._of_the_far_head_elsewhere() == (
        "At 1,024 bytes the answer is that with it the loss ends 0.100 nats lower with softmax "
        "attention and 0.100 nats lower with linear attention"
    )
