"""A trained model's runs as its figures read them: pairs of texts, sets of heads, rankings."""

import pytest

from book.figures.lib.records import NotMeasuredError
from book.figures.trained_model import head_grid, measured, remove_exponential
from experiments.harness.learning import returning
from tests.book.figures.made_up import columns


def run(name, gains, losses, **config):
    near = {"window": 64, "first": 4}
    base = {"text": "passages", "split": "test", "distance": 256, "where": "none"}
    config = {**base, "attention": near, **config}
    texts = {"text": [*range(len(gains))], "gain": gains, "loss": losses}
    return {"name": name, "path": name, "config": config, "tables": {"texts": texts}}


def heads(*slopes):
    """A ranking of one text's slopes and of another's, which are 0.1 higher."""
    rows = [
        (text, layer, 0, slope + 0.1 * text, 0.5)
        for text in range(2)
        for layer, slope in enumerate(slopes)
    ]
    table = columns("text layer head slope mass", rows)
    config = {"text": "passages", "split": "validation", "distance": 256, "where": "rank"}
    return {"name": "rank-passages", "path": "r", "config": config, "tables": {"heads": table}}


@pytest.fixture
def stored(monkeypatch):
    runs = [
        run("passages-256-none", [3.0, 2.0], [4.0, 2.0]),
        run("passages-256-all-window-64-4", [-0.5, -0.5], [4.3, 2.1], where="all"),
        run("passages-256-first-gradient-8", [0.5, 0.5], [4.1, 2.1],
            where="first", order="gradient", number=8),
        run("passages-256-but-gradient-8", [2.0, 1.0], [4.2, 2.1],
            where="but", order="gradient", number=8),
        run("passages-256-but-gradient-at-4096-2", [0.0, 0.0], [4.2, 2.1],
            where="but", order="gradient", number=2, ranked=4096),
        run("lists-256-none", [1.0, 1.0], [4.0, 2.0], text="lists"),
        heads(-0.2, -0.7, 0.1),
    ]  # fmt: skip
    monkeypatch.setattr(measured, "learned", lambda experiment: runs)
    return runs


def test_the_rise_compares_text_by_text(stored):
    found = measured.measured(measured.run_of("all", "window-64-4"), "rise")
    assert found.mean == pytest.approx(0.2) and found.texts == 2
    assert found.error == pytest.approx(0.1)  # texts differ by two nats, what is lost by 0.2
    gain = measured.measured(measured.run_of("none"), "gain")
    assert gain.half == pytest.approx(12.71 * 0.5) and str(gain).startswith("2.50 ± 6.3")


def test_texts_of_one_novel_count_as_one(stored):
    run = {"path": "x", "tables": {"texts": {"source": ["a", "a", "b"], "gain": [1.0, 3.0, 4.0]}}}
    found = measured.by_novel(run, "gain")
    assert (found.mean, found.error, found.texts) == (3.0, pytest.approx(1.0), 2)


def test_the_rise_of_tokens_whose_past_is_cut(stored):
    """The lead is whole in a window of 64; the 256 between the copies are not."""
    run = measured.run_of("all", "window-64-4")
    assert (measured.LEAD, measured.PASSAGE) == (returning.LEAD, returning.PASSAGE)
    assert measured.share_cut(run) == pytest.approx(256 / 319)
    assert measured.measured(run, "cut").mean == pytest.approx(0.2 * 319 / 256)
    for attention, tokens in (
        ({"window": 64, "first": 0}, 256),
        ({"window": 16, "first": 4}, 43 + 256),
        ({"window": 256, "first": 0}, 127),
        ({"window": 512, "first": 4}, 0),
        ({"kind": "linear"}, 319),
    ):
        cut = {**run, "config": {**run["config"], "attention": attention}}
        assert measured.share_cut(cut) == pytest.approx(tokens / 319)
    with pytest.raises(NotMeasuredError, match="whose past is cut"):
        measured.share_cut(measured.run_of("none", text="lists"))


def test_recall_is_measured_between_the_floor_and_softmax(stored):
    assert remove_exponential.lost_gain(measured.run_of("none")) == 0
    assert remove_exponential.lost_gain(measured.run_of("all", "window-64-4")) == 1
    some = measured.run_of("first", "gradient-8")
    below = measured.run_of("but", "gradient-8")
    assert remove_exponential.missing(some, below).mean == pytest.approx(1.0)
    assert remove_exponential.lost_gain(some) == pytest.approx(2 / 3)


def test_sets_of_heads_begin_with_none_and_end_with_all(stored):
    found = measured.sets("passages", "gradient")
    assert [*found["kept"]] == [0, 8, 270] and [*found["confined"]] == [0, 262, 270]
    assert found["kept"][8]["name"] == "passages-256-but-gradient-8"
    assert measured.sets("passages", "mass") == {}
    assert measured.sets("lists", "gradient") == {}


def test_a_ranking_is_a_mean_over_its_texts(stored):
    ranking = measured.ranking()
    assert [head.name for head in ranking] == ["1.0", "0.0", "2.0"]
    assert ranking[0].slope.mean == pytest.approx(-0.65)
    assert ranking[0].slope.error == pytest.approx(0.05)
    assert ranking[0].brings.mean == pytest.approx(0.65)
    assert measured.ranking(only=[1])[0].slope.mean == pytest.approx(-0.6)
    assert remove_exponential.halves_share(1) == 1


def test_heads_that_were_confined_alone_stand_by_their_rank(stored, monkeypatch):
    alone = {"where": "head", "order": "gradient"}
    for rank, gains in enumerate(([1.0, 1.0], [2.9, 1.9], [2.0, 1.0])):
        name = f"passages-256-head-gradient-{rank}"
        stored.append(run(name, gains, [4.0, 2.0], **alone, number=rank))
    stored.append(run("lists-256-head-gradient-0", [0.0], [4.0], **alone, number=0, text="lists"))
    found = head_grid.alone_by_rank()
    assert [one.mean for one in found.values()] == pytest.approx([1.5, 0.1, 1.0])
    assert found[1].error == pytest.approx(0)  # both texts lose the same
    monkeypatch.setattr(head_grid, "FEW", 2)
    assert head_grid.most_alone(1) == pytest.approx(1.0)
    monkeypatch.setattr(head_grid, "FEW", 8)
    for missing in (head_grid.most_alone, lambda: head_grid.alone(3)):
        with pytest.raises(NotMeasuredError, match="remove_exponential: "):
            missing()


def test_what_nobody_ran_is_not_measured(stored):
    with pytest.raises(NotMeasuredError, match="no passages-256-head-gradient-0"):
        measured.run_of("head", "gradient-0")
    with pytest.raises(NotMeasuredError, match="no ranking of lists"):
        measured.ranking("lists")
    with pytest.raises(NotMeasuredError, match="no lists-256-all"):
        remove_exponential.lost_gain(measured.run_of("none", text="lists"))


def test_numbers_have_a_minus_sign_and_no_negative_zero():
    assert [measured.signed(x) for x in (1.234, -0.2, -0.001)] == ["1.23", "−0.20", "0.00"]
    assert [measured.signed(x, 1) for x in (-0.02, -0.26)] == ["0.0", "−0.3"]


def test_what_a_copy_brings_is_the_difference_from_its_control(stored):
    text = run("passages-256-first-gradient-8", [0.0], [1.0], where="first")
    control = run("unseen-256-first-gradient-8", [0.0], [1.0], where="first", text="unseen")
    for one, second in ((text, [1.0, 2.0]), (control, [3.5, 4.0])):
        one["tables"]["texts"] = {"text": [0, 1], "second": second}
    with pytest.raises(NotMeasuredError, match="no unseen-256-first-gradient-8"):
        measured.recall(text)
    stored.append(control)
    assert measured.recall(text).mean == pytest.approx(2.25)
    softmax = stored[0], run("unseen-256-none", [0.0], [1.0], text="unseen")
    for one, second in zip(softmax, ([1.0, 1.0], [4.0, 4.0]), strict=True):
        one["tables"]["texts"] = {"text": [0, 1], "second": second}
    stored.append(softmax[1])
    less = measured.more_recall(text, stored[0])
    assert (less.mean, less.error) == (pytest.approx(-0.75), pytest.approx(0.25))
    assert remove_exponential.kept_recall(text) == pytest.approx(2.25 / 3)
