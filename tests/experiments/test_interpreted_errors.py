"""What the book says of the kernels' errors, held to the stored run."""

from book.figures.kernels.interpreted_errors import BOUND
from experiments import interpreted_errors
from experiments.harness.bench import errors
from experiments.harness.core import record


def test_the_stored_run_is_of_the_whole_plan_and_within_the_bound():
    (planned,) = interpreted_errors.runs("cpu", smoke=False)
    (stored,) = record.load("interpreted_errors")
    assert stored["complete"] and stored["config"] == planned.config
    rows = stored["tables"]["rows"]
    assert errors.cases_of(rows) == {tuple(case) for case in planned.config["cases"]}
    assert max(rows["error"]) <= errors.BOUNDS["bfloat16"] == BOUND
