"""All stored runs and the versions that made them, as tables."""

from __future__ import annotations

from collections import Counter

from experiments.catalogue import EXPERIMENTS

from ..lib.records import Record, commits, device_name, load
from ..lib.tables import Marked, Table, code, link, text


def about(experiment: str) -> str:
    """An experiment's heading; its name, if it no longer exists."""
    if experiment not in EXPERIMENTS:
        return experiment
    sentence = EXPERIMENTS[experiment].about
    return sentence[0].upper() + sentence[1:]


def by_experiment() -> Table:
    """The experiments with stored runs: their subjects, and numbers of runs."""
    runs = Counter(run["experiment"] for run in load())
    cells = [[code(name), text(about(name)), f"{runs[name]:,}"] for name in sorted(runs)]
    return Table(["experiment", "what it measures", "runs"], cells, align="llr", wrap=True)


def stored_runs() -> Table:
    """All stored runs, by experiment."""
    titles = ["experiment", "run", "device", "made", "took"]
    records = sorted(load(), key=lambda run: run["experiment"])
    return Table(titles, [_line(run) for run in records], align="llllr", wrap=True)


def _line(run: Record) -> list[str]:
    origin = run["provenance"]
    note = "" if run["complete"] else " (stopped early)"
    changed = " + changes" if origin["dirty"] else ""
    return [
        run["experiment"],
        Marked(link(run["name"], f"../{run['path']}") + note),
        device_name(run),
        # One cell, and no code: thousands of elements fewer.
        f"{origin['started'][:10]}, {', '.join(commits(run))}{changed}",
        f"{origin['seconds'] / 60:.1f} min",
    ]


def versions() -> Table:
    """The versions in each device's first run."""
    seen: dict[str, dict] = {}
    for run in load():
        seen.setdefault(device_name(run), run["provenance"]["versions"])
    names = sorted(
        {name for installed in seen.values() for name, value in installed.items() if value}
    )
    cells = [
        [device, *(str(installed.get(name) or "–") for name in names)]
        for device, installed in seen.items()
    ]
    return Table(["device", *names], cells, align="l" * (len(names) + 1), wrap=True)
