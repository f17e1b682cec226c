"""Copying and selective copying: each layer at its best rate, and layers compared by seed."""

from book.figures.state_spaces import copying_tasks
from tests.book.figures.made_up import asked


def run(model, right, seed=0, task="selective copying", **config):
    return asked(task, model, right, seed, **config)


def test_a_layer_is_shown_at_its_best_rate_and_a_task_that_is_missing_has_no_column(put_tasks):
    runs = [run("s6", x, i) for i, x in enumerate((0.6, 0.8))]
    runs += [run("s6", x, i, learning_rate=1e-2) for i, x in enumerate((0.9, 1.0))]
    put_tasks([*runs, run("s4", 0.2)])
    table = copying_tasks.scores()
    assert table.titles == ["layer", "selective copying"]
    assert sorted(line[1:] for line in table.cells) == [["20%"], ["95% ± 5"]]
    found = copying_tasks.numbers()
    assert (found["selective_s6"], found["selective_s4"]) == ("95% ± 5", "20%")
    assert found["task_updates"] == "2,400" and found["copying_none"] == "not measured yet"


def test_two_layers_are_compared_seed_by_seed(put_tasks):
    put_tasks([
        run(model, right, seed)
        for model, less in (("s6", 0.0), ("linear", 0.1))
        for seed, right in enumerate((0.9 - less, 0.5 - less, 0.7 - less))
    ])  # fmt: skip
    found = copying_tasks.numbers()
    assert found["selective_s6_linear"] == "+10 ± 0"
    assert found["selective_s6_softmax"] == "not measured yet"


def test_the_least_share_is_that_of_a_layer_and_not_of_the_control(put_tasks):
    put_tasks([
        run(model, right, seed, task="copying")
        for model, shares in (("s6", (1.0, 0.9)), ("s4", (0.97, 0.99)), ("none", (0.1, 0.1)))
        for seed, right in enumerate(shares)
    ])  # fmt: skip
    found = copying_tasks.numbers()
    assert (found["copying_least"], found["copying_none"]) == ("90%", "10%")
