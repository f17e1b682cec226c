"""What captions of this chapter's figures state, held against the stored results."""

from book.figures.lib import tasks
from book.figures.long_context import distant_recall
from book.figures.relatives import overwriting, recall
from book.figures.state_spaces import scan_speed


def test_the_captions_findings_are_those_of_the_results():
    linear, adds = (recall.share(name) for name in ("linear", "delta-adds"))
    assert adds.state < 1.1 * linear.state < 1.3 * adds.state
    assert adds.low > linear.high + 0.2
    assert f"{linear.state:,} bytes" in recall.figure().caption

    models = tasks.of_usual_size(tasks.at_best_rates(overwriting.TASK))
    by_writes = [overwriting.shares(overwriting.TASK, model, "writes") for model in models]
    learned = [one for one in by_writes if one[1].mean > 0.2]  # the others guess
    assert len(learned) > 5
    assert all(one[1].mean > one[overwriting.MOST].mean for one in learned)

    near, far = (
        distant_recall.of(distant_recall.shares(), "linear", "noise", at)
        for at in (distant_recall.NEAR, distant_recall.FAR)
    )
    assert abs(near - far) < 0.03

    assert all(scan_speed.ratio(run, "tree", "steps", "forward+backward") > 1
               for run in scan_speed.measured())  # fmt: skip
