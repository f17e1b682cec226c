"""States in the heads that recall, all other heads confined: the runs of `replace_heads`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import comb
from statistics import fmean

from ..lib.format import in_words, percent, size
from ..lib.records import NotMeasuredError, Record, learned, need, of_config, rows
from ..lib.seeds import how_many_seeds
from ..lib.tables import Missing, Table
from ..relatives.random_codes import right_by_the_law
from .measured import HERE, PASSAGE, Mean, mean_of, measured, run_of

EXPERIMENT = "replace_heads"
STATE, WINDOW, FIXED = "hedgehog-128", "window", "taylor-2"
DELTA, ADDS = "delta", "delta-adds"
WIDTH, LAYERS, VOCABULARY = 64, 30, 49_152  # of a head of SmolLM2, and of the model
LAST = 5  # updates of a fit whose mean is told
MONOMIALS = comb(WIDTH + 2, 2)  # of degree 2 at most
# What a table says of an arm, and the numbers in a state of it.
STATES = {
    **{
        f"hedgehog-{n}": (f"{n:,} learned features", n * (WIDTH + 1))
        for n in (4, 16, 64, 128, 512, 2048)
    },
    FIXED: (f"Taylor, degree 2 ({MONOMIALS:,} features)", MONOMIALS * (WIDTH + 1)),
    DELTA: ("delta rule, gated", WIDTH * WIDTH),
    ADDS: ("the same without erasing", WIDTH * WIDTH),
}
FAR = 4096
DISTANCES = (128, HERE, 1024, FAR, 7936)
PAIRS = (1, 4, 16, 64)


def students(*arms: str, heads: int = 8) -> list[Record]:
    """The runs of the first heads of the ranking, a run a seed. Raises NotMeasuredError.

    arms: those of the runs; without any, the two that the table compares.
    """
    wanted = {"arms": [*(arms or (WINDOW, STATE))], "heads": heads}
    found = [run for run in learned(EXPERIMENT) if wanted.items() <= run["config"].items()]
    return need(found, f"{EXPERIMENT}: no {wanted}")


def at_the_end(run: Record, arm: str, column: str, **asked: object) -> dict[int, float]:
    """{text: a column after training} of one arm of a run. Raises NotMeasuredError."""
    found = rows(run, "measured", arm=arm, tokens=run["config"]["tokens"], **asked)
    need(found, f"{EXPERIMENT}: no {arm} at {asked}")
    return {row["text"]: row[column] for row in found}


def by_text(
    arm: str, column: str, distance: int = HERE, pairs: int = 0, *, heads: int = 8
) -> dict[int, float]:
    """{text: mean over seeds} of a column after training.

    pairs: names in a list; 0 of passages. Raises NotMeasuredError.
    """
    asked = {"kind": "lists" if pairs else "passages", "distance": distance, "pairs": pairs}
    seeds = [at_the_end(run, arm, column, **asked) for run in students(heads=heads)]
    return {text: fmean(one[text] for one in seeds) for text in seeds[0]}


def gain(arm: str, *where: int, heads: int = 8) -> Mean:
    """Gain over the texts, each a mean over seeds. Raises NotMeasuredError."""
    return mean_of([*by_text(arm, "gain", *where, heads=heads).values()])


def brings(column: str, *where: int, heads: int = 8) -> Mean:
    """The difference that states make, text by text. Raises NotMeasuredError."""
    state, window = (by_text(arm, column, *where, heads=heads) for arm in (STATE, WINDOW))
    return mean_of([state[text] - window[text] for text in state])


def arm_brings(arm: str, column: str, distance: int = HERE) -> Mean:
    """What an arm of one seed adds, text by text, to the control of this seed.

    Raises NotMeasuredError.
    """
    control = of_config(students(), seed=0)
    run = control if arm == STATE else of_config(students(arm), seed=0)
    asked = {"kind": "passages", "distance": distance, "pairs": 0}
    state = at_the_end(run, arm, column, **asked)
    window = at_the_end(control, WINDOW, column, **asked)
    return mean_of([state[text] - window[text] for text in state])


def arm_loss(arm: str, distance: int) -> Mean:
    """Loss of the tokens that come once, of an arm of seed 0. Raises NotMeasuredError."""
    run = of_config(students() if arm == WINDOW else students(arm), seed=0)
    asked = {"kind": "passages", "distance": distance, "pairs": 0}
    return mean_of([*at_the_end(run, arm, "loss", **asked).values()])


def way(heads: int = 8) -> float:
    """The gain added by the states, as a share of the teacher's lead over the windows."""
    teacher = measured(run_of("none"), "gain").mean
    return brings("gain", heads=heads).mean / (teacher - gain(WINDOW, heads=heads).mean)


def teacher(distance: int = HERE, pairs: int = 0) -> Mean:
    """Gain of the unchanged model on the same texts. Raises NotMeasuredError."""
    asked = {"kind": "lists" if pairs else "passages", "distance": distance, "pairs": pairs}
    [run] = students("softmax", heads=0)
    return mean_of([*at_the_end(run, "softmax", "gain", **asked).values()])


def table() -> Table | Missing:
    """What states add after training, asked for passages and for lists; and the teacher."""
    questions = [(f"passage, {distance:,}", distance, 0) for distance in DISTANCES]
    questions += [(f"names, {pairs}", HERE, pairs) for pairs in PAIRS]
    cells = []
    for label, *where in questions:
        try:
            without = gain(WINDOW, *where)
            added = brings("gain", *where)
        except NotMeasuredError:
            continue
        taught = _if_measured(lambda where=where: teacher(*where))
        more = _if_measured(lambda where=where: brings("gain", *where, heads=24))
        cells.append([label, str(without.texts), str(without), taught, str(added), more])
    if not cells:
        return Missing(EXPERIMENT)
    titles = ["asked for", "texts", "no states", "teacher", "states add", "in 24 heads add"]
    return Table(titles, cells)


def _if_measured(told: Callable[[], Mean]) -> str:
    try:
        return str(told())
    except NotMeasuredError:
        return "–"


def missed() -> list[float]:
    """Squared error of the eight heads' outputs over their square, by update of the fit, seed 0.

    A mean over the layers with such heads; the record has that over all. Raises NotMeasuredError.
    """
    layers = {row["layer"] for row in rows(run_of("first", "gradient-8"), "confined")}
    fitted = rows(of_config(students(), seed=0), "features", arm=STATE)
    every = LAYERS / len(layers)
    return [every * row["missed"] for row in need(fitted, f"{EXPERIMENT}: no fit")]


def by_the_law() -> float:
    """Share right of a passage and the tokens after it, by random codes in a state as large."""
    return right_by_the_law(128, WIDTH, PASSAGE + HERE, VOCABULARY)


def kinds() -> list[str]:
    """The arms of `STATES` that are stored, by their bytes."""
    found = []
    for arm in sorted(STATES, key=lambda arm: STATES[arm][1]):
        with suppress(NotMeasuredError):
            arm_brings(arm, "gain")
            found.append(arm)
    return found


def state_table() -> Table | Missing:
    """What each kind of state in the first eight heads adds; by their bytes, in 32 bits."""
    cells = []
    for arm in kinds():
        label, kept = STATES[arm]
        later = _if_measured(lambda arm=arm: arm_brings(arm, "gain", 1024))
        added = arm_brings(arm, "gain"), later, arm_brings(arm, "loss")
        cells.append([label, size(4 * kept), *map(str, added)])
    if not cells:
        return Missing(EXPERIMENT)
    return Table(["a head's state", "bytes", "adds", "after 1,024", "to the loss"], cells)


def rounded(loss: Mean) -> str:
    """A loss whose interval is wide: 6.0 ± 0.7."""
    return f"{loss.mean:.1f} ± {loss.half:.1f}"


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    return in_words(
        few_states_seeds=lambda: how_many_seeds(len(students())),
        few_states_tokens=lambda: f"{students()[0]['config']['tokens']:,}",
        few_states_adds=lambda: brings("gain"),
        few_states_way=lambda: percent(way()),
        few_states_state=lambda: gain(STATE),
        few_states_window=lambda: gain(WINDOW),
        few_states_more=lambda: brings("gain", heads=24),
        few_states_more_seeds=lambda: how_many_seeds(len(students(heads=24))),
        few_states_more_way=lambda: percent(way(24)),
        few_law=lambda: percent(by_the_law()),
        few_missed=lambda: percent(fmean(missed()[-LAST:])),
        few_missed_first=lambda: percent(missed()[0]),
        few_kinds_most=lambda: arm_brings(DELTA, "gain"),
        few_kinds_adds=lambda: arm_brings(ADDS, "gain"),
        few_kinds_far_adds=lambda: rounded(arm_loss(ADDS, FAR)),
        few_kinds_far=lambda: rounded(arm_loss(DELTA, FAR)),
        few_kinds_far_window=lambda: rounded(arm_loss(WINDOW, FAR)),
        few_fixed_features=lambda: f"{MONOMIALS:,}",
    )
