"""Every stored run and the versions it was made with, as tables."""

from __future__ import annotations

from experiments.harness import record

from .results import Record, device_name
from .words import Marked, Table, code, link, text

ABOUT = {
    "ngram_baseline": "What counting letters achieves on the same held-out text.",
    "loss_curves": "Training GPT-2 with either attention: loss of every update and its seconds.",
    "mode_speed": "One attention layer, softmax and the three modes, by length.",
    "block_speed": "One block of GPT-2 in training, softmax and the three modes, by length.",
    "kernel_build": "What the compiler makes of every kernel: registers, shared memory, traffic.",
    "kernel_speed": "The kernels beside other libraries' and the machine's limits.",
    "sampling_speed": "One token of sampling, KV cache and recurrent state, by position.",
    "taylor_error": "Softmax attention with the exponential cut: error, state and time of a tick.",
    "rnn_orders": "A deep RNN tick by tick and layer by layer.",
    "variants": "A nano GPT-2 with every feature map, with and without the normaliser.",
}


class Sections:
    """Several tables, each under a heading and a line that says what it lists."""

    def __init__(self, parts: list[tuple[str, str, Table]]) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return "\n\n".join(f"{title}\n{about}\n{table!r}" for title, about, table in self.parts)

    def _repr_markdown_(self) -> str:
        return "\n\n".join(
            f"### {text(title)}\n\n{text(about)}\n\n{table._repr_markdown_()}"
            for title, about, table in self.parts
        )


def stored_runs() -> Sections:
    """Every stored run, by experiment."""
    by_experiment: dict[str, list[Record]] = {}
    for run in record.load():
        by_experiment.setdefault(run["experiment"], []).append(run)
    titles = ["run", "device", "date", "commit", "took"]
    return Sections(
        [
            (
                experiment.replace("_", " ").capitalize(),
                ABOUT.get(experiment, ""),
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
        Marked(code(origin["commit"][:7]) + changed),
        f"{origin['seconds'] / 60:.1f} min",
    ]


def versions() -> Table:
    """The versions that each device's first run was made with."""
    seen: dict[str, dict] = {}
    for run in record.load():
        seen.setdefault(device_name(run), run["provenance"]["versions"])
    names = sorted({name for found in seen.values() for name, value in found.items() if value})
    cells = [
        [device, *(str(found.get(name) or "–") for name in names)] for device, found in seen.items()
    ]
    return Table(["device", *names], cells, align="l" * (len(names) + 1), wrap=True)
