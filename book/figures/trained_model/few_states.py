"""States in the heads that recall, all other heads confined: the runs of `replace_heads`."""

from __future__ import annotations

from statistics import mean

from ..lib.format import in_words, percent
from ..lib.records import NotMeasuredError, Record, learned, rows
from ..lib.seeds import how_many_seeds
from ..lib.tables import Missing, Table
from .measured import HERE, Mean, mean_of, measured, run_of

EXPERIMENT = "replace_heads"
STATE, WINDOW = "hedgehog-128", "window"
DISTANCES = (128, HERE, 1024, 4096, 7936)
PAIRS = (1, 4, 16, 64)


def students() -> list[Record]:
    """The runs of the first eight heads, a run a seed. Raises NotMeasuredError."""
    runs = [run for run in learned(EXPERIMENT) if run["name"].startswith("first-8")]
    if not (found := [run for run in runs if run["config"]["arms"] == [WINDOW, STATE]]):
        raise NotMeasuredError(f"{EXPERIMENT}: no first-8")
    return found


def _of_run(run: Record, arm: str, column: str, where: tuple[str, int, int]):
    wanted = arm, run["config"]["tokens"], *where
    names = "arm", "tokens", "kind", "distance", "pairs"
    return {
        row["text"]: row[column]
        for row in rows(run, "measured")
        if tuple(row[name] for name in names) == wanted
    }


def by_text(arm: str, column: str, distance: int = HERE, pairs: int = 0) -> dict[int, float]:
    """{text: mean over seeds} of a column after training.

    pairs: names in a list; 0 of passages. Raises NotMeasuredError.
    """
    where = "lists" if pairs else "passages", distance, pairs
    of_runs = [_of_run(run, arm, column, where) for run in students()]
    if not all(of_runs):
        raise NotMeasuredError(f"{EXPERIMENT}: no {arm} at {where}")
    return {text: mean(one[text] for one in of_runs) for text in of_runs[0]}


def after(arm: str, column: str, *where: int) -> Mean:
    """Mean over the texts, each a mean over seeds. Raises NotMeasuredError."""
    return mean_of([*by_text(arm, column, *where).values()])


def above(arm: str, other: str, column: str, *where: int) -> Mean:
    """One arm less another, text by text. Raises NotMeasuredError."""
    one, than = (by_text(each, column, *where) for each in (arm, other))
    return mean_of([one[text] - than[text] for text in one])


def way() -> float:
    """The gain added by the states, as a share of the teacher's lead over the windows."""
    teacher = measured(run_of("none"), "gain").mean
    return above(STATE, WINDOW, "gain").mean / (teacher - after(WINDOW, "gain").mean)


def table() -> Table | Missing:
    """Both students after training, asked for passages and for lists."""
    questions = [(f"passage, {distance:,}", distance, 0) for distance in DISTANCES]
    questions += [(f"names, {pairs}", HERE, pairs) for pairs in PAIRS]
    cells = []
    for label, *where in questions:
        try:
            gains = [after(arm, "gain", *where) for arm in (STATE, WINDOW)]
            added = [above(STATE, WINDOW, column, *where) for column in ("gain", "loss")]
        except NotMeasuredError:
            continue
        cells.append([label, str(gains[0].texts), *(str(each) for each in (*gains, *added))])
    if not cells:
        return Missing(EXPERIMENT)
    titles = ["asked for", "texts", "with states", "without", "states add", "to the loss"]
    return Table(titles, cells)


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    return in_words(
        few_states_seeds=lambda: how_many_seeds(len(students())),
        few_states_tokens=lambda: f"{students()[0]['config']['tokens']:,}",
        few_states_adds=lambda: above(STATE, WINDOW, "gain"),
        few_states_way=lambda: percent(way()),
        few_states_state=lambda: after(STATE, "gain"),
        few_states_window=lambda: after(WINDOW, "gain"),
    )
