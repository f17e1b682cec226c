"""What captions of this chapter's figures state, held against the stored results."""

from book.figures.lib import tasks
from book.figures.relatives import overwriting
from book.figures.state_spaces import scan_speed


def test_the_captions_findings_are_those_of_the_results():
    models = tasks.of_usual_size(tasks.at_best_rates(overwriting.TASK))
    by_writes = [overwriting.shares(overwriting.TASK, model, "writes") for model in models]
    learned = [one for one in by_writes if one[1].mean > 0.2]  # the others guess
    assert len(learned) > 5
    assert all(one[1].mean > one[overwriting.MOST].mean for one in learned)

    assert all(scan_speed.ratio(run, "tree", "steps", "forward+backward") > 1
               for run in scan_speed.measured())  # fmt: skip
