"""A trained model that learns to do without looking back: the runs of `linearise`."""

from __future__ import annotations

from ...explorable.figure import Axis, Explorable, Series, Toggle
from ..lib.format import counted, in_words, percent
from ..lib.records import NotMeasuredError, Record, learned, need, provenance, rows
from ..lib.tables import Missing, Table
from .measured import FAR, HERE, Mean, columns_of, mean_of, measured, run_of, signed
from .remove_exponential import SHARE

EXPERIMENT = "linearise"
ARMS = {"window-state": "window and state", "window": "window alone"}
ARM = {"window-state": "state", "window": "window"}  # the runs' names
WHAT = {"gain": "gain", "loss": "rise of the loss"}
WIDTH = 64  # of a head
FEATURES = 2 * WIDTH  # of a Hedgehog map: exp of a learned product, and of its negative
TIMES = 1000  # the axis is in thousands of tokens
QUESTIONS = {
    ("passages", 256): "passage, 256",
    ("passages", 1024): "passage, 1,024",
    ("passages", 4096): "passage, 4,096",
    ("lists", 256): "names, 256",
}


def stored(name: str = "softmax-0") -> Record:
    """A run, by default that in which no head keeps softmax. Raises NotMeasuredError."""
    runs = [run for run in learned(EXPERIMENT) if run["name"] == name]
    return need(runs, f"{EXPERIMENT}: no {name}")[0]


def marks() -> list[int]:
    """Tokens of training after which passages were measured. Raises NotMeasuredError."""
    measured = (row for row in rows(stored(), "measured") if row["distance"] == HERE)
    return sorted({row["tokens"] for row in measured})


def by_text(
    arm: str,
    tokens: int,
    column: str,
    text: str = "passages",
    distance: int = HERE,
    run: str = "softmax-0",
) -> dict[int, float]:
    """{text: value} of a run's arm ("state" or "window") after `tokens` tokens of training.

    Raises NotMeasuredError.
    """
    wanted = arm, tokens, text, distance
    values = {
        row["text"]: row[column]
        for row in rows(stored(run), "measured")
        if (row["arm"], row["tokens"], row["kind"], row["distance"]) == wanted
    }
    return need(values, f"{EXPERIMENT}: no {wanted}")


def after(arm: str, tokens: int, column: str, text: str = "passages", distance: int = HERE) -> Mean:
    """Mean of a column over the texts. Raises NotMeasuredError."""
    return mean_of([*by_text(arm, tokens, column, text, distance).values()])


def rise(arm: str, tokens: int) -> Mean:
    """Rise of the loss of unrepeated text above the teacher's, text by text.

    It is over all tokens: training also changes those that see the whole past. NotMeasuredError.
    """
    own = by_text(arm, tokens, "loss")
    teacher = {row["text"]: row["loss"] for row in rows(run_of("none"), "texts")}
    return mean_of([loss - teacher[text] for text, loss in own.items()])


def brings(tokens: int, column: str, text: str = "passages", distance: int = HERE) -> Mean:
    """The difference that a state makes to the gain or loss, text by text. NotMeasuredError."""
    state, window = (by_text(arm, tokens, column, text, distance) for arm in ("state", "window"))
    return mean_of([state[each] - window[each] for each in state])


def way(tokens: int) -> float:
    """The gain added by a state, as a share of the teacher's lead over the window."""
    teacher = measured(run_of("none"), "gain").mean
    return brings(tokens, "gain").mean / (teacher - after("window", tokens, "gain").mean)


def memory_in_tokens() -> int:
    """The window whose keys and values take as much memory as a group's window and three states."""
    run = stored()["config"]
    seen = run["arms"]["state"]["window"] + run["arms"]["state"]["first"]
    states = SHARE * FEATURES * (WIDTH + 1)
    return seen + states // (2 * WIDTH)


def _line(arm: str, what: str) -> Series:
    def result(tokens: int) -> Mean:
        return after(ARM[arm], tokens, "gain") if what == "gain" else rise(ARM[arm], tokens)

    columns = columns_of(((tokens / TIMES, result(tokens)) for tokens in marks()), "tokens")
    return Series({"arm": arm, "what": what}, columns, source=stored()["path"])


def figure(id: str = "taught-again") -> Explorable | Missing:
    """Gain and loss of both students against the tokens of their training."""
    try:
        last, teacher = marks()[-1], measured(run_of("none"), "gain")
        series = [_line(arm, what) for what in WHAT for arm in ARMS]
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    ends = columns_of(((tokens, teacher) for tokens in (0.0, last / TIMES)), "tokens")
    return Explorable(
        id=id,
        caption=(
            "**States in every head, briefly trained, bring back little of the gain.** All heads "
            "see 64 tokens and the first four; those of one student also keep a state of the "
            "tokens between. Both learn from the same tokens in the same order, one seed. *Rise of "
            "the loss*: above the teacher's, of all tokens that come once. Dashed grey: the "
            "teacher's gain. Bars: 95% intervals over the texts."
        ),
        alt=(
            "Gain against tokens of training. Both students stay far below the teacher's gain. "
            "The student with a state rises towards zero, the one with the window alone stays "
            "lower. Both losses fall within the first sixth and change little after it."
        ),
        series=series,
        ceilings=[Series({}, ends, label="the teacher's gain")],
        x=Axis("tokens", "Tokens of training", "thousand"),
        y=Axis("nats", "Gain, and rise of the loss", "nats per token", digits=3,
               range=(-0.6, 3.1), low="low", high="high"),
        color="arm",
        dash="what",
        mark="line+dot",
        controls=[
            Toggle("arm", "Heads keep", options=ARMS),
            Toggle("what", "Shown", options=WHAT),
        ],
        provenance=provenance([stored(), run_of("none")]),
    )  # fmt: skip


def points(share: Mean) -> str:
    """A difference of two shares and half of its interval, in percentage points."""
    return f"{signed(100 * share.mean, 1)} ± {100 * share.half:.1f}"


def table() -> Table | Missing:
    """Both students at the end, measured at several distances."""
    try:
        last = marks()[-1]
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    cells = []
    for place, label in QUESTIONS.items():
        try:
            gains = [after(arm, last, "gain", *place) for arm in ARM.values()]
            added = [str(brings(last, column, *place)) for column in ("gain", "loss")]
        except NotMeasuredError:
            continue
        cells.append([label, str(gains[0].texts), *(str(gain) for gain in gains), *added])
    titles = ["asked for", "texts", "gain with state", "without", "state adds", "adds to the loss"]
    return Table(titles, cells)


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    return in_words(
        taught_tokens=lambda: f"{marks()[-1]:,}",
        taught_fitted=lambda: f"{stored()['config']['feature_tokens']:,}",
        taught_adds=lambda: brings(marks()[-1], "gain"),
        taught_adds_first=lambda: brings(0, "gain"),
        taught_way=lambda: percent(way(marks()[-1])),
        taught_far=lambda: brings(marks()[-1], "gain", distance=FAR),
        taught_memory=lambda: counted(memory_in_tokens()),
        taught_more_right=lambda: points(brings(marks()[-1], "right")),
        taught_teacher_right=lambda: percent(measured(run_of("none"), "right").mean),
        **{
            f"taught_{arm}_right": lambda arm=arm: percent(after(arm, marks()[-1], "right").mean)
            for arm in ARM.values()
        },
    )
