"""Gain at several distances, by the heads of a trained model that look back."""

from __future__ import annotations

from collections.abc import Iterator

from ...explorable.figure import Axis, Explorable, Filter, Series, Toggle
from ..lib.format import in_words, percent
from ..lib.records import NotMeasuredError, Record, provenance
from ..lib.tables import Missing
from .measured import (
    EXPERIMENT,
    FAR,
    HEADS,
    HERE,
    NEAR,
    Mean,
    change,
    columns_of,
    measured,
    more_recall,
    ranking,
    run_of,
    softmax_of,
)
from .remove_exponential import (
    FEW,
    SOME,
    TEXTS,
    kept_recall,
    lost_gain,
    missing,
)

DISTANCES = (64, HERE, 1024, 2048, FAR)
MORE = 40  # heads, of both rankings in turn
# The ranking at this distance, and heads of both rankings in turn, in the names of runs.
AT_FAR, AT_BOTH = f"gradient-at-{FAR}", f"gradient-at-{HERE}-{FAR}"
# Which heads look back, as the runs are named; softmax in all has its colour. The ranking is that
# of the same kind of text.
CASES = {
    "softmax": ("none", ""),
    "here": ("but", f"gradient-{SOME}"),
    "far": ("but", f"{AT_FAR}-{SOME}"),
    "both": ("but", f"{AT_BOTH}-{MORE}"),
    "but-here": ("first", "gradient-1"),
    "but-far": ("first", f"{AT_FAR}-1"),
    "none": ("all", NEAR),
}


def gain(case: str, distance: int, text: str = "passages") -> Mean:
    """Gain with the heads of a case looking back. Raises NotMeasuredError."""
    return measured(run_of(*CASES[case], text=text, distance=distance), "gain")


def way(where: str, number: int, distance: int, order: str = "gradient") -> float:
    """Gain of a run, as a share of the way from no head looking back to all.

    where: "but" if the ranking's first heads alone look back, "first" if all others do. order:
    "gradient", `AT_FAR` or `AT_BOTH`. Raises NotMeasuredError.
    """
    return 1 - lost_gain(run_of(where, f"{order}-{number}", distance=distance))


def _runs(case: str, text: str) -> Iterator[tuple[int, Record]]:
    """Distances at which a case was measured, and the runs."""
    for distance in DISTANCES:
        try:
            yield distance, run_of(*CASES[case], text=text, distance=distance)
        except NotMeasuredError:
            continue


def _labels() -> dict[str, str]:
    one, other = (ranking(distance=distance)[0].name for distance in (HERE, FAR))
    return {
        "softmax": "all",
        "here": f"{SOME} ranked at {HERE}",
        "far": f"{SOME} ranked at {FAR:,}",
        "both": f"{MORE} of both rankings",
        "but-here": f"all but {one}",
        "but-far": f"all but {other}",
        "none": "none",
    }


def figure(id: str = "heads-by-distance") -> Explorable | Missing:
    """Gain against the distance, a line for the heads that look back."""
    try:
        labels = _labels()
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    series, drawn = [], []
    for text in TEXTS:
        for case in CASES:
            runs = dict(_runs(case, text))
            if len(runs) < 2:
                continue
            columns = columns_of(
                ((distance, measured(run, "gain")) for distance, run in runs.items()), "distance"
            )
            source = next(iter(runs.values()))["path"]
            series.append(Series({"heads": case, "text": text}, columns, source=source))
            drawn += runs.values()
    if not series:
        return Missing(EXPERIMENT)
    return Explorable(
        id=id,
        caption=(
            "**Farther back, recall needs other heads.** Gain against the number of tokens between "
            "the two copies, for the heads that look back. Bars: 95% intervals over the texts."
        ),
        alt=(
            "Gain against distance. The heads ranked at 256 tokens keep the gain up to 1,024 and "
            "lose it at 4,096; those ranked at 4,096 tokens keep more of it there."
        ),
        series=series,
        x=Axis("distance", "Tokens between", "tokens", log=2),
        y=Axis("nats", "Gain", "nats per token", digits=2, low="low", high="high"),
        color="heads",
        mark="line+dot",
        controls=[
            Filter("text", "What comes again", options=TEXTS, default="passages"),
            Toggle("heads", "Heads look back", options=labels),
        ],
        provenance=provenance(drawn),
    )


def takes(case: str, distance: int, text: str = "passages") -> Mean:
    """What a case takes of the gain with all heads, text by text. Raises NotMeasuredError."""
    return missing(run_of(*CASES[case], text=text, distance=distance))


def far_recall(case: str, sign: int = 1) -> Mean:
    """What a case recalls above all heads, far and with the control. Raises NotMeasuredError.

    sign: -1 for what it takes from the recall.
    """
    run = run_of(*CASES[case], distance=FAR)
    more = more_recall(run, softmax_of(run))
    return more._replace(mean=sign * more.mean)


def fewer(more: Mean) -> Mean:
    """A fall, from a change."""
    return more._replace(mean=-more.mean)


def last() -> Record:
    """The run in which the far ranking's last head alone is confined. Raises NotMeasuredError."""
    return run_of("but", f"{AT_FAR}-{HEADS - 1}", distance=FAR)


def both() -> Record:
    """The run in which heads of both rankings alone look back, far. Raises NotMeasuredError."""
    return run_of(*CASES["both"], distance=FAR)


def place() -> int:
    """Place, from 0, of the far ranking's first head in the near one. Raises NotMeasuredError."""
    head = ranking(distance=FAR)[0].name
    return [one.name for one in ranking()].index(head)


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    return in_words(
        near_takes_256=lambda: takes("but-here", HERE),
        near_adds_4096=lambda: far_recall("but-here"),
        second_adds_4096=lambda: more_recall(last(), softmax_of(last())),
        near_takes_late=lambda: takes("but-here", HERE, "late"),
        far_place=lambda: str(1 + place()),
        far_takes_256=lambda: takes("but-far", HERE),
        far_takes_4096=lambda: far_recall("but-far", sign=-1),
        far_takes_late=lambda: takes("but-far", HERE, "late"),
        far_takes_share=lambda: percent(1 - kept_recall(run_of(*CASES["but-far"], distance=FAR))),
        at_1024_some=lambda: percent(way("but", SOME, 1024)),
        at_4096_some=lambda: percent(way("but", SOME, FAR)),
        at_4096_far=lambda: percent(way("but", SOME, FAR, AT_FAR)),
        near_rise_4096=lambda: measured(run_of(*CASES["none"], distance=FAR), "cut"),
        adjacent_rise_4096=lambda: measured(
            run_of("all", "window-64-4-adjacent", distance=FAR), "cut"
        ),
        few_rise_4096=lambda: measured(run_of("first", f"gradient-{FEW}", distance=FAR), "cut"),
        both_rise_4096=lambda: measured(both(), "cut"),
        both_256=lambda: percent(way("but", MORE, HERE, AT_BOTH)),
        at_4096_far_recall=lambda: percent(kept_recall(run_of(*CASES["far"], distance=FAR))),
        both_second=lambda: fewer(change(both(), "second")),
        names_gain=lambda: gain("softmax", HERE, "lists"),
    )
