"""Known words among those that trained models write, beside the novels' own."""

from __future__ import annotations

from math import sqrt

from ..lib.format import in_words
from ..lib.records import Record, learned, need, rows
from ..lib.seed_error import t_95
from ..lib.tables import Missing, Table

EXPERIMENT = "written_words"
MODELS = {"softmax": "Softmax", "window": "Softmax, last 128", "linear": "Linear"}
RACES = {"race": "race", "long_race": "long race"}
WAYS = ("sampled", "greedy")


def writers() -> list[Record]:
    """The complete runs of known writers, in the order of the table."""
    order = [(race, model) for race in RACES for model in MODELS]
    by_writer = {
        (run["config"]["race"], run["config"]["model"]): run
        for run in learned(EXPERIMENT)
        if run["complete"]
    }
    return [by_writer[writer] for writer in order if writer in by_writer]


def known(run: Record, writer: str) -> float:
    """The known words among all that a run's model writes, or the novels have at its places."""
    texts = rows(run, "texts", writer=writer)
    count = need(sum(row["words"] for row in texts), f"{EXPERIMENT}: no words of {writer}")
    return sum(row["known"] for row in texts) / count


def half(run: Record, writer: str) -> float:
    """Half of the 95% interval of `known`, a ratio of two sums over places (Cochran, 1977)."""
    texts, mean = rows(run, "texts", writer=writer), known(run, writer)
    off = sum((row["known"] - mean * row["words"]) ** 2 for row in texts)
    n, words = len(texts), sum(row["words"] for row in texts)
    return t_95(n) * sqrt(n / (n - 1) * off) / words if n > 1 else 0.0


def share(run: Record, writer: str) -> str:
    """`known` and half of its interval in percent: "98.6 ± 0.4%"."""
    return f"{100 * known(run, writer):.1f} ± {100 * half(run, writer):.1f}%"


def repeating(run: Record, writer: str) -> str:
    """Texts in which a run of words comes again: "100 of 100"."""
    texts = rows(run, "texts", writer=writer)
    return f"{sum(row['repeats'] for row in texts)} of {len(texts)}"


def table() -> Table | Missing:
    """Known words and repeating texts of each writer, drawn and likeliest, and of the novels."""
    if not (runs := writers()):
        return Missing(EXPERIMENT)
    cells = [
        [
            f"{MODELS[run['config']['model']]}, {RACES[run['config']['race']]}",
            *(of(run, way) for way in WAYS for of in (share, repeating)),
        ]
        for run in runs
    ]
    novels = [share(runs[0], "novel"), repeating(runs[0], "novel")]
    cells.append(["The novels themselves", *novels, "", ""])
    titles = ["", "known, drawn", "repeats", "known, likeliest", "repeats"]
    return Table(titles, cells)


def numbers() -> dict[str, str]:
    """Numbers for the chapter: what was written, and of how much."""

    def first() -> Record:
        runs = need(writers(), f"{EXPERIMENT}: nothing stored")
        return runs[0]

    def drawn(race: str) -> str:
        """The least and the most of a race's writers: "96.6%", "96.1 to 96.6%"."""
        found = sorted(known(run, "sampled") for run in writers() if run["config"]["race"] == race)
        need(found, f"{EXPERIMENT}: nothing of {race} stored")
        least, most = (f"{100 * share:.1f}" for share in (found[0], found[-1]))
        return f"{least}%" if least == most else f"{least} to {most}%"

    return in_words(
        words_places=lambda: first()["config"]["places"],
        words_letters=lambda: first()["config"]["letters"],
        words_temperature=lambda: first()["config"]["temperature"],
        words_novels=lambda: share(first(), "novel"),
        words_race=lambda: drawn("race"),
        words_long=lambda: drawn("long_race"),
    )
