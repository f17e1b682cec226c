"""What ends the plateau of a long context: one change at a time, for both attentions."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean

from ...explorable.figure import Axis, Explorable, Filter, Series, Toggle
from ..index import ngram_baseline
from ..lib.format import WrittenFor, in_words
from ..lib.records import NotMeasuredError, Record, have, learned, provenance
from ..lib.seeds import mean_and_spread, seeds_in_words
from ..lib.tables import Missing, Table
from ..linear_self_attention import variants

REMEDIES = {
    "as it was": "as in GPT-2, rate 0.001",
    "higher rate": "rate 0.002, warm-up of 100",
    "sinusoids": "the table begins with sinusoids",
    "no positions": "no table of positions",
    "four times the bytes": "four times the bytes an update",
    "rotation": "rotary positions",
    "token shift": "token shift",
    "fades in 256": "one head fades, half in 256 bytes",
    "fades in 64": "one head fades, half in 64 bytes",
    "fades in 16": "one head fades, half in 16 bytes",
    "fades in 4": "one head fades, half in 4 bytes",
    "fades in 1": "one head fades, half in 1 byte",
    "near only": "both heads fade, half in 4 bytes",
}
CONTROLS = {
    "token before": "no attention, the byte before",
    "shift alone": "no attention, token shift",
    "none": "no attention",
}
NAMED = {**REMEDIES, **CONTROLS}
ATTENTION = {"softmax": "Softmax", "linear": "Linear"}
# What the chart draws: as many lines as have colours of their own. The table has them all.
DRAWN = ("as it was", "no positions", "fades in 4", "near only", "token before", "none")
HALF_LIVES = (1, 4, 16, 64, 256)  # bytes, of the one head that fades
CLEARLY = 0.05  # nats below letter pairs, more than another seed moves a loss
Key = tuple[str, str]


def runs() -> dict[Key, list[Record]]:
    """The seeds of every remedy and attention; the controls have "none" for an attention."""
    found: dict[Key, list[Record]] = {}
    for run in learned("plateau"):
        if not any(run["tables"]["validation"]["update"]):
            continue  # stopped before anything was learned
        config = run["config"]
        attention = "none" if config["remedy"] in CONTROLS else config["attention"]
        found.setdefault((config["remedy"], attention), []).append(run)
    return found


def ends(remedy: str, attention: str) -> list[float]:
    """The last loss of every seed. Raises NotMeasuredError."""
    found = runs().get((remedy, attention))
    if not found:
        raise NotMeasuredError(f"plateau: no {remedy}, {attention}")
    return [run["tables"]["validation"]["loss"][-1] for run in found]


def end(remedy: str, attention: str) -> float:
    """The mean of them. Raises NotMeasuredError."""
    return mean(ends(remedy, attention))


def spread() -> float:
    """How far the seeds of a remedy end apart, at most. Raises NotMeasuredError."""
    gaps = [max(found) - min(found) for key in runs() if len(found := ends(*key)) > 1]
    if not gaps:
        raise NotMeasuredError("plateau: one seed")
    return max(gaps)


def leaves(remedy: str, attention: str) -> float | None:
    """After how many updates a loss was first clearly below letter pairs, the mean over seeds.

    None where a seed did not come so far. Raises NotMeasuredError.
    """
    ends(remedy, attention)
    level, firsts = ngram_baseline.loss(2) - CLEARLY, []
    for run in runs()[remedy, attention]:
        table = run["tables"]["validation"]
        points = zip(table["update"], table["loss"], strict=True)
        first = next((update for update, loss in points if loss < level), None)
        if first is None:
            return None
        firsts.append(first)
    return mean(firsts)


def _mean_curve(found: list[Record]) -> dict[str, list]:
    tables = [run["tables"]["validation"] for run in found]
    updates = [u for u in tables[0]["update"] if u]
    losses = [dict(zip(one["update"], one["loss"], strict=True)) for one in tables]
    return {"update": updates, "loss": [mean(loss[u] for loss in losses) for u in updates]}


def figure(id: str = "plateau") -> Explorable | Missing:
    """Loss by update at 1,024 bytes, a curve for every remedy."""
    found = {key: records for key, records in runs().items() if key[0] in DRAWN}
    if not found:
        return Missing("plateau")
    series = []
    for (remedy, attention), records in found.items():
        for shown in ATTENTION if attention == "none" else (attention,):
            keys = {"attention": shown, "remedy": remedy}
            source = records[0]["path"]
            series.append(Series(keys, _mean_curve(records), source=source))
    have_letters = bool(have("ngram_baseline"))
    return Explorable(
        id=id,
        caption=_caption(),
        alt=(
            "Curves of validation loss by update at a context of 1,024 bytes. The model as it was "
            "stays at the level of letter pairs; with a head that fades it falls below."
        ),
        series=series,
        x=Axis("update", "Updates"),
        y=Axis("loss", "Loss", "nats per byte", digits=4),
        color="remedy",
        mark="line",
        controls=[
            Filter("attention", "Attention", options=ATTENTION, default="linear"),
            Toggle("remedy", "Change", options={name: NAMED[name] for name in DRAWN}),
        ],
        ceilings=[
            Series(
                {},
                {
                    "update": [
                        min(one.columns["update"][0] for one in series),
                        max(one.columns["update"][-1] for one in series),
                    ],
                    "loss": [ngram_baseline.loss(2)] * 2,
                },
                label="counting letter pairs",
            )
        ]
        if have_letters
        else [],
        provenance=provenance(learned("plateau")),
    )


def _caption() -> str:
    every = runs()
    config = next(iter(every.values()))[0]["config"]
    seeds = seeds_in_words([*map(len, every.values())])
    return (
        f"**What ends the plateau.** Held-out loss of the nano model at {config['context']:,} "
        f"bytes, {config['updates']} updates for every curve, fixed beforehand; {seeds}. Changes "
        "add up: all but the first train at a higher rate after a longer warm-up, and have no "
        "table of positions."
    )


def table() -> Table | Missing:
    """Where each ends, and when it left letter pairs behind."""
    found = runs()
    if not found:
        return Missing("plateau")
    cells = []
    for remedy, label in NAMED.items():
        line = [label]
        for attention in ATTENTION:
            key = "none" if remedy in CONTROLS else attention
            shown = in_words(
                end=lambda r=remedy, a=key: mean_and_spread(ends(r, a)),
                left=lambda r=remedy, a=key: _left(r, a),
            )
            measured = (remedy, key) in found
            line += [shown["end"], shown["left"]] if measured else ["", ""]
        if any(line[1:]):
            cells.append(line)
    titles = [
        "changed",
        "softmax ends at",
        "left pairs after",
        "linear ends at",
        "left pairs after",
    ]
    return Table(titles, cells)


def _left(remedy: str, attention: str) -> str:
    found = leaves(remedy, attention)
    return "never" if found is None else f"{found:.0f}"


def best_attention() -> float:
    """The lowest end of all that attend, in whichever way. Raises NotMeasuredError."""
    found = [end(*key) for key in runs() if key[0] not in CONTROLS]
    if not found:
        raise NotMeasuredError("plateau: no attention")
    return min(found)


def noise() -> float:
    """The difference of losses below which nothing is claimed."""
    try:
        return max(spread(), variants.seed_spread())
    except NotMeasuredError:
        return variants.seed_spread()


def of_rates() -> str:
    """Where linear attention ends by how fast its one head fades: a clause."""
    found = {n: f"fades in {n}" for n in HALF_LIVES if (f"fades in {n}", "linear") in runs()}
    if len(found) < 2:
        return "one rate alone has been measured so far, and the question is open"
    told = ", ".join(f"{end(name, 'linear'):.3f} at {n}" for n, name in found.items())
    return (
        f"linear attention ends at these losses by the bytes in which a weight halves: {told}; "
        f"less than {noise():.2f} between two of them decides nothing"
    )


def _seeds(*remedies: str) -> str:
    """Over how many seeds the ends of these are told. Raises NotMeasuredError."""
    counts = [len(found) for (remedy, _), found in runs().items() if remedy in remedies]
    if not counts:
        raise NotMeasuredError(f"plateau: no {', '.join(remedies)}")
    return seeds_in_words(counts)


def numbers() -> dict[str, str]:
    """What the chapter on training says of the plateau."""
    return in_words(
        plateau_best=lambda: f"{best_attention():.2f}",
        plateau_before=lambda: f"{end('token before', 'none'):.2f}",
        plateau_rates=of_rates,
        plateau_shift_alone=lambda: f"{end('shift alone', 'none'):.2f}",
        plateau_shift_softmax=lambda: f"{end('token shift', 'softmax'):.2f}",
        plateau_shift_linear=lambda: f"{end('token shift', 'linear'):.2f}",
        plateau_bytes_seeds=lambda: _seeds("four times the bytes"),
        plateau_shift_seeds=lambda: _seeds("shift alone", "token shift"),
        plateau_others_seeds=lambda: _seeds("rotation", "token shift"),
    )


def claims() -> WrittenFor:
    """What that chapter's words say of it. A difference counts beyond that of another seed."""

    def stays(remedy: str) -> bool:
        return all(leaves(remedy, attention) is None for attention in ATTENTION)

    return WrittenFor(
        rate_and_warm_up_and_positions_do_not_end_it=lambda: all(
            map(stays, ("as it was", "higher rate", "sinusoids", "no positions"))
        ),
        four_times_the_bytes_an_update_do_not_either=lambda: stays("four times the bytes"),
        a_head_that_fades_ends_it_for_both=lambda: all(
            leaves("fades in 4", attention) is not None for attention in ATTENTION
        ),
        only_a_head_that_fades_fast_ends_it=lambda: (
            stays("fades in 256")
            and stays("fades in 64")
            and all(leaves("fades in 16", attention) is not None for attention in ATTENTION)
        ),
        the_faster_it_fades_the_lower_both_end=lambda: all(
            end(f"fades in {fast}", attention) < end(f"fades in {slow}", attention)
            for fast, slow in pairwise(HALF_LIVES)
            for attention in ATTENTION
        ),
        the_fastest_ends_lower_than_the_next_beyond_the_noise=lambda: all(
            end("fades in 1", attention) < end("fades in 4", attention) - noise()
            for attention in ATTENTION
        ),
        a_head_that_sees_everything_adds_nothing=lambda: all(
            abs(end("fades in 4", attention) - end("near only", attention)) < noise()
            for attention in ATTENTION
        ),
        rotary_positions_end_it_for_softmax_and_not_for_linear_attention=lambda: (
            leaves("rotation", "softmax") is not None and leaves("rotation", "linear") is None
        ),
        a_token_shift_ends_it_for_both_and_its_control_is_ahead=lambda: all(
            leaves("token shift", attention) is not None
            and end("shift alone", "none") < end("token shift", attention) - noise()
            for attention in ATTENTION
        ),
        the_byte_before_ends_it_without_attention_and_is_ahead=lambda: (
            leaves("token before", "none") is not None
            and leaves("none", "none") is None
            and end("token before", "none") < best_attention() - noise()
        ),
    )
