"""What the chapter on long context says of its figures, in numbers, tables and verdicts."""

from __future__ import annotations

from itertools import pairwise
from math import floor, log10

from ..index import race, race_words
from ..lib.format import NOT_MEASURED, WrittenFor, in_words, percent
from ..lib.records import NotMeasuredError, learned
from ..lib.seeds import seeds_by_context, seeds_in_words
from ..lib.tables import Missing, Table
from . import distant_recall, whole_novels
from .long_context import CONTEXTS, MAIN, MODELS, asked, counts, drawn, runs_of, told

SHORTER = CONTEXTS[:-1]  # where the novels go on past what was trained
MILLI = "thousandths of a nat"  # in which so small gains are told


def _rise(name: str, context: int, like: str | None = None, at: int = CONTEXTS[-1]) -> float:
    """By how much the loss of a model grows past its trained length, beyond what another's does.

    The other has read the same pages: the same attention trained at the longest context, or `like`
    trained `at`. At most, over the later positions. Raises NotMeasuredError.
    """
    losses, others = (
        drawn(race.positions(n, "whole").get(model, {}))
        for model, n in ((name, context), (like or name, at))
    )
    if context - 1 not in losses or losses.keys() - others.keys():
        raise NotMeasuredError(f"race: no positions of {name} trained at {context} and another")
    above = {last: loss - others[last] for last, loss in losses.items() if last >= context - 1}
    return max(above.values()) - above[context - 1]


def _worth(attention: str, kind: str, at: int, context: int = MAIN) -> str:
    """A gain in thousandths of a nat, with what two standard errors allow."""
    found = told(attention, context, kind, at)
    gain = _plain(1000 * found["gain"]).replace("-", "−")
    return f"{gain} ± {_plain(2000 * found['error'], 1)}"


def _plain(value: float, digits: int = 2) -> str:
    """A number of `digits` significant digits, without an exponent: 0.00046."""
    if not value:
        return "0"
    places = digits - 1 - floor(log10(abs(value)))
    return f"{value:.{max(0, places)}f}"


def _given_words() -> str:
    parts = [
        f"with {name} attention, {256:,} bytes are worth {_worth(name, 'given', 256)} "
        f"thousandths of a nat more than 16, and 16,384 bytes {_worth(name, 'given', 16384)}"
        for name in MODELS
    ]
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}."


def table() -> Table | Missing:
    """What having met a passage is worth, by how far back it stood."""
    if not (found := learned("long_context")):
        return Missing("long_context")
    distances = sorted({at for each in found for at in each["config"]["distances"]})
    cells = [[f"{at:,}", *(_again_in_words(name, at) for name in MODELS)] for at in distances]
    return Table(["bytes back", *MODELS], cells, align="rrr")


def by_context() -> Table | Missing:
    """What a long past is worth to models trained at each context."""
    cells = []
    for context in CONTEXTS:
        found = _far_at(context)
        if NOT_MEASURED not in found.values():
            cells.append([f"{context:,}", *found.values()])
    titles = ["trained at", *(f"{what}, {n}" for what in ("more text", "passage") for n in MODELS)]
    return Table(titles, cells, align="rrrrr") if cells else Missing("long_context")


def _far_at(context: int) -> dict[str, str]:
    return in_words(
        **{
            f"{kind} {name}": lambda kind=kind, name=name, at=at: _worth(name, kind, at, context)
            for kind, at in (("given", 16384), ("again", 1024))
            for name in MODELS
        }
    )


def _again_in_words(attention: str, distance: int) -> str:
    return in_words(gain=lambda: _worth(attention, "again", distance))["gain"]


def _falls_like_an_average(attention: str) -> bool:
    """Whether four times the distance leaves a half to an eighth of the gain, each time."""
    gains = [one["gain"] for one in asked(attention, MAIN, "again")]
    return all(2 < before / after < 8 for before, after in pairwise(gains))


def numbers() -> dict[str, str]:
    """What the chapter on long context says of these runs."""
    return in_words(
        given_words=_given_words,
        given_least=lambda: f"{told('linear', MAIN, 'given', 16)['loss']:.2f}",
        given_most=lambda: f"{told('linear', MAIN, 'given', 16384)['loss']:.2f}",
        given_softmax_longest=lambda: _worth("softmax", "given", 16384, CONTEXTS[-1]),
        given_linear_longest=lambda: _worth("linear", "given", 16384, CONTEXTS[-1]),
        asked_seeds=lambda: seeds_by_context(counts()),
        asked_main=lambda: seeds_in_words([_asked(name) for name in MODELS]),
        longest=lambda: f"{max(runs_of('linear', MAIN)[0]['config']['given']):,}",
    )


def claims() -> WrittenFor:
    """What its words say of the figure, beyond the numbers in them."""

    def worth(name: str, context: int) -> float:
        return told(name, context, "given", 16384)["gain"]

    def worth_little(name: str, context: int = MAIN) -> bool:
        return worth(name, context) < 0.02

    return WrittenFor(
        the_gain_falls_as_the_distance_grows_for_both=lambda: all(
            map(_falls_like_an_average, MODELS)
        ),
        in_every_run_the_gain_falls_from_each_distance_to_the_next=lambda: all(
            before > after
            for name in MODELS
            for one in runs_of(name, MAIN)
            for before, after in pairwise(one["tables"]["again"]["gain"])
        ),
        a_few_dozen_bytes_are_nearly_all_that_is_used=lambda: all(map(worth_little, MODELS)),
        more_text_is_worth_little_to_all_and_most_to_those_of_the_longest_context=lambda: all(
            worth_little(name, context) and worth(name, context) <= worth(name, CONTEXTS[-1])
            for name in MODELS
            for context in CONTEXTS
        ),
        their_lead_over_those_of_4096_is_within_the_errors=lambda: all(
            worth(name, CONTEXTS[-1]) - worth(name, MAIN)
            < 2 * max(told(name, n, "given", 16384)["error"] for n in (MAIN, CONTEXTS[-1]))
            for name in MODELS
        ),
        neither_line_turns_upwards_past_the_trained_length=lambda: all(
            _rise(name, context) < race_words.noise(context)
            for name in MODELS
            for context in SHORTER
        ),
        linear_attention_does_not_fall_behind_as_the_text_grows=lambda: all(
            _rise("linear", context, "softmax", context) < race_words.noise(context)
            for context in SHORTER
        ),
    )


def verdicts() -> Table:
    """The three questions, what was found for each attention, and in how many runs."""
    cells = []
    for question, seeds, answer in (
        (
            f"what it costs to read on to 16,384 bytes after training at 4,096, {MILLI}",
            _raced,
            _late,
        ),
        (
            f"16,384 bytes given in place of 16, {MILLI}",
            _asked,
            lambda name: _worth(name, "given", 16384),
        ),
        (
            f"what a whole novel costs, in place of its last few thousand bytes, {MILLI}",
            lambda name: len(whole_novels.runs_of(name, MAIN)),
            whole_novels.cost,
        ),
        *(
            (
                f"a passage {distance:,} bytes back, {MILLI}",
                _asked,
                lambda name, distance=distance: _worth(name, "again", distance),
            )
            for distance in (1024, 16384)
        ),
        *(
            (question, _answered, lambda name, between=between: _found(name, between))
            for question, between in (
                ("one of eight values, 4,096 tokens of noise later", "noise"),
                ("the same, with other pairs between", "pairs"),
            )
        ),
    ):
        words = in_words(
            **{name: lambda n=name, a=answer: a(n) for name in MODELS},
            seeds=lambda seeds=seeds: seeds_in_words([seeds(name) for name in MODELS]),
        )
        cells.append([question, *(words[name] for name in (*MODELS, "seeds"))])
    return Table(["what was asked", *MODELS, "runs"], cells, align="lrrl", wrap=True)


def _raced(attention: str) -> int:
    return len(race.ends(attention, MAIN))


def _asked(attention: str) -> int:
    return len(runs_of(attention, MAIN))


def _answered(attention: str) -> int:
    return len(distant_recall.runs_of(attention))


def _found(attention: str, between: str) -> str:
    found = distant_recall.shares()
    return f"{percent(distant_recall.of(found, attention, between, 4096))} right"


def _late(attention: str) -> str:
    def late(context: int) -> float:
        losses = race.positions(context, "whole").get(attention)
        if not losses or not {2047, 16383} <= losses.keys():
            raise NotMeasuredError(f"race: no positions of {attention} trained at {context}")
        return losses[16383] - losses[2047]

    # Later pages may be harder, for whichever model: what the longest context makes of them is
    # taken off.
    return f"{1000 * (late(MAIN) - late(CONTEXTS[-1])):.0f}".replace("-", "−")
