"""Recall and loss of a trained model by the number of heads that may look back."""

from __future__ import annotations

from ...explorable.figure import Axis, Explorable, Filter, Series, Toggle
from ..lib.format import counted, in_words, listed, percent
from ..lib.records import NotMeasuredError, Record, need, provenance, rows
from ..lib.tables import Missing, Table
from .measured import (
    EXPERIMENT,
    HEADS,
    HERE,
    LEAD,
    PASSAGE,
    Head,
    Mean,
    by_novel,
    change,
    columns_of,
    mean_of,
    measured,
    ranking,
    recall,
    run_of,
    sets,
    signed,
    softmax_of,
    stored,
)

TEXTS = {"passages": "a passage of a novel", "lists": "names and room numbers"}
KEPT = {"kept": "most important first", "confined": "most important last"}
AXIS = "Gain, and rise of the loss"
WHAT = {"gain": "gain", "cut": "rise of the loss"}
CONTROLS = {"random-0": "in random order", "mass": "by attention mass"}
FEW, SOME = 8, 24  # numbers of heads that the chapter mentions
SHARE = 3  # heads with the same keys
# Kinds of attention to which all heads are confined, by the names of the runs.
BASICS = {
    "softmax, as trained": ("none", ""),
    "window of 64 and the first 4 tokens": ("all", "window-64-4"),
    "window of 64 and the first token": ("all", "window-64-1"),
    "window of 64 alone": ("all", "window-64-0"),
    "elu + 1 in place of exp": ("all", "linear"),
}


def _columns(runs: dict[int, Record], what: str) -> dict[str, list]:
    return columns_of(((heads, measured(run, what)) for heads, run in runs.items()), "heads")


def _lines(text: str) -> list[Series]:
    lines = []
    for which, runs in sets(text, "gradient").items():
        for what in WHAT:
            try:
                columns = _columns(runs, what)
            except NotMeasuredError:
                continue
            source = next(iter(runs.values()))["path"]
            keys = {"which": which, "what": what, "text": text}
            lines.append(Series(keys, columns, source=source))
    return lines


def _grey(text: str) -> list[Series]:
    """The same for heads in other orders; for random ones both ends of the order are alike."""
    series = []
    for order, label in CONTROLS.items():
        both = sets(text, order)
        lines = {f"{label}, {KEPT[which]}": runs for which, runs in both.items()}
        if order.startswith("random"):
            merged = {heads: run for runs in both.values() for heads, run in runs.items()}
            lines = {label: dict(sorted(merged.items()))} if merged else {}
        for name, runs in lines.items():
            series.append(Series({"text": text}, _columns(runs, "gain"), label=name))
    return series


def figure(id: str = "heads-that-look-back") -> Explorable | Missing:
    """Gain of what comes again, and loss of the rest, against the heads that may look back."""
    series = [line for text in TEXTS for line in _lines(text)]
    if not series:
        return Missing(EXPERIMENT)
    texts = {one.keys["text"] for one in series}
    orders = ("gradient", *CONTROLS)
    drawn = {
        run["name"]: run
        for text in texts
        for order in orders
        for runs in sets(text, order).values()
        for run in runs.values()
    }
    return Explorable(
        id=id,
        caption=(
            "**After 256 tokens, a few heads carry recall.** *Gain*: how much lower the loss of a "
            "passage is the second time. *Rise of the loss*: on the text between, against softmax. "
            "One head after another may look back, the most important first or last. The others "
            "see 64 tokens "
            "and the first four. The ranking is from other texts. Grey: the gain with heads by "
            "attention mass and in a random order. Bars: 95% intervals over the texts."
        ),
        alt=(
            "Gain against the number of heads that may look back: one line reaches its full "
            "height with 24 heads, another stays near the bottom until the last eight are added. "
            "The loss rises by a fifth of a nat where no head looks back."
        ),
        series=series,
        ceilings=[line for text in TEXTS if text in texts for line in _grey(text)],
        x=Axis("heads", "Heads that may look back", "of 270", range=(-2, HEADS + 2)),
        y=Axis("nats", AXIS, "nats per token", digits=3, low="low", high="high"),
        color="which",
        dash="what",
        mark="line+dot",
        controls=[
            Filter("text", "What comes again", options=TEXTS, default="passages"),
            Toggle("which", "Heads look back", options=KEPT),
            Toggle("what", "Shown", options=WHAT),
        ],
        provenance=provenance(drawn.values()),
    )  # fmt: skip


def table() -> Table | Missing:
    """Loss and gain with all heads confined alike, without any training."""
    cells = []
    for label, place in BASICS.items():
        try:
            run = run_of(*place)
        except NotMeasuredError:
            continue
        cut, gain = (str(measured(run, column)) for column in ("cut", "gain"))
        cells.append([label, cut, gain, percent(measured(run, "right").mean)])
    if not cells:
        return Missing(EXPERIMENT)
    return Table(["all heads", "loss above softmax", "gain", "guessed right"], cells)


def confined(number: int, order: str = "gradient", text: str = "passages") -> Record:
    """The run in which a ranking's first heads are confined. Raises NotMeasuredError."""
    return run_of("first", f"{order}-{number}", text=text) if number else run_of("none", text=text)


def everywhere(case: str = "window-64-4") -> Record:
    """The run in which all heads are confined alike. Raises NotMeasuredError."""
    return run_of("all", case)


def first_alone(number: int, order: str = "gradient", text: str = "passages") -> Record:
    """The run in which only a ranking's first heads look back. Raises NotMeasuredError."""
    return run_of("but", f"{order}-{number}", text=text)


def missing(run: Record, below: Record | None = None) -> Mean:
    """The gain below another run's, by default softmax's, text by text. Raises NotMeasuredError."""
    pairs = zip(rows(below or softmax_of(run), "texts"), rows(run, "texts"), strict=False)
    return mean_of([one["gain"] - other["gain"] for one, other in pairs])


def random_orders(where: str, number: int) -> list[Record]:
    """The runs in which a random order's first heads are confined, or all but these.

    where: "first" or "but". Raises NotMeasuredError.
    """
    names = [f"passages-{HERE}-{where}-random-{seed}-{number}" for seed in range(9)]
    runs = [run for name in names if (run := stored().get(name))]
    return need(runs, f"{EXPERIMENT}: no random order")


def on_training(where: str, case: str = "") -> Mean:
    """The gain on novels of the training split. Raises NotMeasuredError."""
    return measured(run_of(where, case, text="train-passages"), "gain")


def ranked_for(other: str, text: str, where: str, number: int) -> Mean:
    """A text's gain with heads that were ranked for the other kind. Raises NotMeasuredError."""
    return measured(run_of(where, f"gradient-{number}-ranked-by-{other}", text=text), "gain")


def points_fewer(value: Mean) -> str:
    """A fall of a share, in percentage points, and half of its interval."""
    return f"{-100 * value.mean:.1f} ± {100 * value.half:.1f}"


def lost_gain(run: Record) -> float:
    """The share of the gain that is lost: 0 for softmax, 1 for all heads confined."""
    where = {name: run["config"][name] for name in ("text", "distance")}
    floor = run_of("all", "window-64-4", **where)
    return missing(run).mean / missing(floor).mean


def kept_recall(run: Record) -> float:
    """Recall from a copy, as a share of that with softmax. Raises NotMeasuredError."""
    return recall(run).mean / recall(softmax_of(run)).mean


def numbers_alone() -> list[int]:
    """Numbers of the gradient's first heads that looked back alone. Raises NotMeasuredError."""
    kept = need(sets("passages", "gradient").get("kept"), f"{EXPERIMENT}: no first heads alone")
    return [n for n in kept if 0 < n < HEADS]


def in_both(one: list[Head], other: list[Head], number: int) -> int:
    """Number of heads among the first of two rankings."""
    return len({head.name for head in one[:number]} & {head.name for head in other[:number]})


def halves_share(number: int) -> int:
    """Number of heads among the first by each half of the texts. Raises NotMeasuredError."""
    texts = ranking()[0].slope.texts
    halves = range(texts // 2), range(texts // 2, texts)
    return in_both(*(ranking(only=half) for half in halves), number)


def layer_gains() -> dict[int, Mean]:
    """The gain when one layer alone is confined, for the layers that were measured."""
    runs = (run for run in stored().values() if run["config"]["where"] == "layer")
    return {
        run["config"]["number"]: measured(run, "gain")
        for run in runs
        if (run["config"]["text"], run["config"]["distance"]) == ("passages", HERE)
    }


def layer_gain(layer: int) -> Mean:
    """The gain of one layer. Raises NotMeasuredError."""
    return need(layer_gains().get(layer), f"{EXPERIMENT}: no layer {layer} alone")


def least_layer_gain(but: int) -> float:
    """The smallest of these gains, except one layer's. Raises NotMeasuredError."""
    gains = [gain.mean for layer, gain in layer_gains().items() if layer != but]
    return min(need(gains, f"{EXPERIMENT}: no layer alone"))


def shared_heads(number: int = FEW) -> int:
    """Number of heads that are among the first of both rankings. Raises NotMeasuredError."""
    return in_both(*map(ranking, TEXTS), number)


def key_heads(number: int) -> int:
    """Number of the 90 key-value heads that the first heads read; three heads share one.

    Raises NotMeasuredError.
    """
    return len({(head.layer, head.head // SHARE) for head in ranking()[:number]})


def numbers() -> dict[str, str]:
    """Numbers for the chapter: sets of heads, and the ranking that they come from."""
    return (
        in_words(
            texts=lambda: str(measured(confined(0), "gain").texts),
            text_tokens=lambda: str(LEAD + PASSAGE + HERE + PASSAGE),
            novels=lambda: counted(len({row["source"] for row in rows(confined(0), "texts")})),
            softmax_loss=lambda: f"{measured(confined(0), 'loss').mean:.2f}",
            softmax_gain=lambda: measured(confined(0), "gain"),
            novels_gain=lambda: by_novel(confined(0), "gain"),
            softmax_first=lambda: f"{measured(confined(0), 'first').mean:.2f}",
            softmax_second=lambda: f"{measured(confined(0), 'second').mean:.2f}",
            near_rise=lambda: measured(everywhere(), "cut"),
            near_gain=lambda: measured(everywhere(), "gain"),
            sinkless_rise=lambda: measured(everywhere("window-64-0"), "cut"),
            one_token_rise=lambda: measured(everywhere("window-64-1"), "cut"),
            random_rise=lambda: signed(
                max(measured(run, "cut").mean for run in random_orders("first", FEW))
            ),
            few_rise=lambda: measured(confined(FEW), "cut"),
            few_gain=lambda: measured(confined(FEW), "gain"),
            softmax_recall=lambda: recall(confined(0)),
            near_recall=lambda: recall(everywhere()),
            few_recall=lambda: recall(confined(FEW)),
            some_recall=lambda: recall(first_alone(SOME)),
            kept_few_recall=lambda: recall(first_alone(FEW)),
            few_lost=lambda: percent(1 - kept_recall(confined(FEW))),
            some_missing=lambda: missing(first_alone(SOME)),
            some_second=lambda: change(first_alone(SOME), "second"),
            some_fewer_right=lambda: points_fewer(change(first_alone(SOME), "right")),
            few_random=lambda: listed(
                str(measured(run, "gain")) for run in random_orders("first", FEW)
            ),
            orders=lambda: counted(len(random_orders("first", FEW))),
            some_random=lambda: listed(
                str(measured(run, "gain")) for run in random_orders("but", SOME)
            ),
            few_mass=lambda: measured(confined(FEW, "mass"), "gain"),
            some_gain=lambda: measured(first_alone(SOME), "gain"),
            some_mass=lambda: measured(first_alone(SOME, "mass"), "gain"),
            kept_few_gain=lambda: measured(first_alone(FEW), "gain"),
        )
        | _ranked()
    )


def _ranked() -> dict[str, str]:
    return in_words(
        layer_gain=lambda: layer_gain(18),
        layers_least=lambda: f"{least_layer_gain(but=18):.2f}",
        top_missing=lambda: missing(confined(1)),
        rank_texts=lambda: counted(ranking()[0].slope.texts),
        shared_heads=lambda: counted(shared_heads()),
        few_stable=lambda: counted(halves_share(FEW)),
        some_stable=lambda: counted(halves_share(SOME)),
        numbers_alone=lambda: listed(map(str, numbers_alone())),
        shared_by_chance=lambda: f"{FEW**2 / HEADS:.1f}",
        train_texts=lambda: str(on_training("none").texts),
        train_gain=lambda: on_training("none"),
        train_few=lambda: on_training("first", f"gradient-{FEW}"),
        train_some=lambda: on_training("but", f"gradient-{SOME}"),
        train_kept_few=lambda: on_training("but", f"gradient-{FEW}"),
        borrowed_some=lambda: ranked_for("lists", "passages", "but", SOME),
        lent_some=lambda: ranked_for("passages", "lists", "but", SOME),
        few_keys=lambda: counted(key_heads(FEW)),
        some_keys=lambda: counted(key_heads(SOME)),
    )
