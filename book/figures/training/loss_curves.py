"""Loss of GPT-2 with softmax and with linear attention: figure and numbers."""

from __future__ import annotations

from lsa.gpt import SCALES

from ...explorable.figure import Crossing, Explorable, Filter, Series, Toggle
from ..index import ngram_baseline
from ..lib.axes import LOSS, PROGRESS
from ..lib.format import in_words
from ..lib.records import (
    SCALE_LABELS,
    Record,
    curve,
    have,
    losses_by_update,
    need,
    provenance,
)
from ..lib.tables import Missing

CLEARLY = 0.05  # nats a byte, more than the difference between seeds
CONTEXTS = [256, 1024, 2048, 4096, 16384, 65536, 131072]
WRITTEN_FOR = [256, 1024, 2048, 4096, 16384]  # contexts that the pages' text mentions
SHORT_RUNS = (1024, 16384)  # contexts at which neither model left the plateau
FADES = ", half of its heads fade"
Pair = tuple[Record, Record]


def model(run: Record) -> str:
    """The GPT-2 of a run: its scale, and whether half of its heads decay with distance."""
    config = run["config"]
    return f"{config['scale']}{FADES if 'attention_options' in config else ''}"


def yardsticks(records: list[Record]) -> list[Series]:
    """Grey lines: n-gram models that the runs of each plot have passed, and the next one."""
    named = {2: "letter pairs", 3: "letter triples"}
    counted = ngram_baseline.losses() if have("ngram_baseline") else {}
    lines = []
    for key in sorted({(model(run), run["config"]["context"]) for run in records}):
        curves = [curve(run) for run in records if (model(run), run["config"]["context"]) == key]
        best = min(min(each["loss"]) for each in curves)
        worst = max(max(each["loss"]) for each in curves)
        for order, level in counted.items():
            if order == 1 or level > worst:
                continue
            columns = {"loss": [level, level]}
            for column in ("update", "minutes"):
                ends = [(each[column][0], each[column][-1]) for each in curves]
                columns[column] = [min(first for first, _ in ends), max(last for _, last in ends)]
            lines.append(
                Series(
                    keys=dict(zip(("scale", "context"), key, strict=True)),
                    columns=columns,
                    label=f"counting {named.get(order, f'{order} letters')}",
                )
            )
            if level < best:
                break
    return lines


def figure(id: str = "first-runs") -> Explorable | Missing:
    """Loss on held-out novels against updates and time: the book's first runs."""
    records = [run for run in have("loss_curves") if curve(run)["update"]]
    if not records:
        return Missing("loss_curves")
    return Explorable(
        id=id,
        caption=(
            "**At 4,096 bytes both stay near letter pairs for thousands of updates.** Loss on "
            "five novels that were never trained on. Both read the same bytes in the same order. "
            "Dashed: the loss of models that only count letters. At 256 bytes both learn, softmax"
            " more. The longer the context, the more updates linear attention makes in the same "
            "*time*."
        ),
        alt=(
            "Falling curves of validation loss at one context length, for softmax and for linear "
            "attention, against minutes of training or against updates."
        ),
        series=[
            Series(
                keys={
                    "attention": run["config"]["attention"],
                    "scale": model(run),
                    "context": run["config"]["context"],
                },
                columns=curve(run),
                source=run["path"],
            )
            for run in records
        ],
        x=PROGRESS,
        y=LOSS,
        color="attention",
        mark="line+dot",
        controls=[
            Filter(
                "scale",
                "Model",
                options=SCALE_LABELS
                | {name: name for name in map(model, records) if FADES in name},
                kind="select",
            ),
            Filter("context", "Context", options=CONTEXTS, default=first_shown(records)),
            Toggle("attention", "Attention"),
        ],
        ceilings=yardsticks(records),
        crossing=Crossing("loss", "Loss to reach", compare=("softmax", "linear")),
        provenance=provenance([*records, *have("ngram_baseline")]),
    )


def first_shown(records: list[Record]) -> int:
    """The longest context at which a model of the smallest scale has clearly passed letter pairs.

    There the plot shows learning, not only the cost of reading. If there is none, the longest of
    all.
    """
    smallest = min((run["config"]["scale"] for run in records), key=[*SCALES].index)
    smallest_runs = [run for run in records if run["config"]["scale"] == smallest]
    learned = [run for run in smallest_runs if leaves_pairs(run) is not None]
    return max(run["config"]["context"] for run in learned or smallest_runs)


def below_pairs() -> float:
    """A loss clearly below that of counted letter pairs. Raises NotMeasuredError."""
    return ngram_baseline.loss(2) - CLEARLY


def leaves_pairs(run: Record) -> int | None:
    """The first update at which a run's loss is clearly below that of letter pairs."""
    if not have("ngram_baseline"):
        return None
    level = below_pairs()
    return next((update for update, loss in losses_by_update(run).items() if loss < level), None)


def pair(records: list[Record], scale: str, context: int) -> Pair:
    """The softmax and the linear run of one scale and context. Raises NotMeasuredError."""
    runs = {
        run["config"]["attention"]: run
        for run in records
        if model(run) == scale and run["config"]["context"] == context
    }
    need({"softmax", "linear"} <= runs.keys(), f"loss_curves: no pair of {scale} at {context}")
    return runs["softmax"], runs["linear"]


def loss_after(run: Record, updates: int) -> float:
    """Validation loss after a number of updates. Raises NotMeasuredError."""
    loss = losses_by_update(run).get(updates)
    return need(loss, f"{run['name']}: no validation after {updates} updates")


def common_updates(*records: Record) -> int:
    """The last number of updates after which all these runs were validated."""
    both = set.intersection(*({*losses_by_update(run)} for run in records))
    return max(need(both, "loss_curves: never validated after the same updates"))


def behind(softmax: Record, linear: Record) -> float:
    """Nats by which linear attention is worse after the same updates, the last of both."""
    both = common_updates(softmax, linear)
    return loss_after(linear, both) - loss_after(softmax, both)


def last_loss(run: Record) -> float:
    """The last loss of a run's curve. Raises NotMeasuredError if it was never validated."""
    return [*need(losses_by_update(run), f"{run['name']}: never validated").values()][-1]


def last_update(run: Record) -> int:
    """Number of updates at the last validation. Raises NotMeasuredError."""
    return max(need(losses_by_update(run), f"{run['name']}: never validated"))


def nano_pair(context: int) -> Pair:
    """The two nano runs of the book's text. Raises NotMeasuredError."""
    return pair(text_runs(), "nano", context)


def text_runs() -> list[Record]:
    """The runs on the device that the text is about. Raises NotMeasuredError."""
    return need(have("loss_curves", context=WRITTEN_FOR), "loss_curves: nothing stored")


def numbers() -> dict[str, str]:
    """Numbers for the pages: loss curves."""

    def short_runs() -> str:
        made = [*map(last_update, (run for n in SHORT_RUNS for run in nano_pair(n)))]
        return f"{min(made):,} to {max(made):,}"

    def left_pairs(context: int, i: int) -> str:
        update = leaves_pairs(nano_pair(context)[i])
        return "no" if update is None else f"{update:,}"

    return in_words(
        leaves_softmax=lambda: left_pairs(256, 0),
        leaves_linear=lambda: left_pairs(256, 1),
        old_updates=lambda: f"{common_updates(*nano_pair(2048)):,}",
        old_gap=lambda: f"{abs(behind(*nano_pair(2048))):.3f}",
        short_runs=short_runs,
        late_softmax_4096=lambda: left_pairs(4096, 0),
        late_linear_4096=lambda: left_pairs(4096, 1),
    )
