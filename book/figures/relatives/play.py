"""Data of the stage `play`: a few made-up texts, and trained models' answers."""

from __future__ import annotations

from dataclasses import asdict

from IPython.display import HTML

from ...explorable.markup import json_script
from ..lib.records import Record, learned, provenance, rows
from ..lib.tables import Missing

EXPERIMENT = "task_examples"
TASKS = ("recall", "selective copying", "copying", "induction")
MODELS = ("softmax", "linear")


def data() -> HTML | Missing:
    """JSON in a script element for the stage, or a note on what to run if a model is missing.

    tasks: by name, texts of {tokens, asked, wanted, said}: the tokens, the places of the questions,
        the right answers, and each model's answers.
    sources: where they come from.
    """
    runs = {(run["config"]["task"], run["config"]["model"]): run for run in learned(EXPERIMENT)}
    wanted = [(task, model) for task in TASKS for model in MODELS]
    if not runs.keys() >= set(wanted):
        return Missing(EXPERIMENT)
    shown = {
        "tasks": {task: texts({model: runs[task, model] for model in MODELS}) for task in TASKS},
        "sources": [asdict(source) for source in provenance([runs[one] for one in wanted])],
    }
    return HTML(json_script(shown, id="play-data"))


def texts(runs: dict[str, Record]) -> list[dict]:
    """The texts that models of one task answered; see `data`."""
    answers = {model: rows(run, "texts") for model, run in runs.items()}
    first = answers[MODELS[0]]
    shown = []
    for text in range(runs[MODELS[0]]["config"]["texts"]):
        here = [i for i, row in enumerate(first) if row["text"] == text]
        questions = [i for i in here if first[i]["wanted"] >= 0]
        shown.append(
            {
                "tokens": [first[i]["token"] for i in here],
                "asked": [first[i]["place"] for i in questions],
                "wanted": [first[i]["wanted"] for i in questions],
                "said": {
                    model: [lines[i]["said"] for i in questions] for model, lines in answers.items()
                },
            }
        )
    return shown
