"""Every stored run and the versions it was made with, as tables."""

from __future__ import annotations

from experiments.catalogue import EXPERIMENTS

from ..lib.records import Record, commits, device_name, load
from ..lib.tables import Marked, Table, code, link, text


class Sections:
    """Several tables, each under a heading and the command that makes what it lists."""

    def __init__(self, parts: list[tuple[str, str, Table]]) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return "\n\n".join(f"{title}\n{made}\n{table!r}" for title, made, table in self.parts)

    def _repr_markdown_(self) -> str:
        return "\n\n".join(
            f"### {text(title)}\n\n{made}\n\n{table._repr_markdown_()}"
            for title, made, table in self.parts
        )


def about(experiment: str) -> str:
    """What an experiment says of itself, as a heading; its name, if it is no longer there."""
    if experiment not in EXPERIMENTS:
        return experiment
    said = EXPERIMENTS[experiment].about
    return said[0].upper() + said[1:]


def stored_runs() -> Sections:
    """Every stored run, by experiment."""
    by_experiment: dict[str, list[Record]] = {}
    for run in load():
        by_experiment.setdefault(run["experiment"], []).append(run)
    titles = ["run", "device", "date", "commit", "took"]
    return Sections(
        [
            (
                about(experiment),
                f"`python -m experiments run {code(experiment).strip('`')}`",
                Table(titles, [_line(run) for run in runs], align="llllr", wrap=True),
            )
            for experiment, runs in sorted(by_experiment.items())
        ]
    )


def _line(run: Record) -> list[str]:
    origin = run["provenance"]
    note = "" if run["complete"] else " (stopped early)"
    changed = " + changes" if origin["dirty"] else ""
    return [
        Marked(link(run["name"], f"../{run['path']}") + note),
        device_name(run),
        origin["started"][:10],
        Marked(", ".join(map(code, commits(run))) + changed),
        f"{origin['seconds'] / 60:.1f} min",
    ]


def versions() -> Table:
    """The versions that each device's first run was made with."""
    seen: dict[str, dict] = {}
    for run in load():
        seen.setdefault(device_name(run), run["provenance"]["versions"])
    names = sorted({name for found in seen.values() for name, value in found.items() if value})
    cells = [
        [device, *(str(found.get(name) or "–") for name in names)] for device, found in seen.items()
    ]
    return Table(["device", *names], cells, align="l" * (len(names) + 1), wrap=True)
