"""The plan on a cluster: jobs of one computer each run a part of it, by `submitit`.

They run on Slurm, or as local processes for a rehearsal. All jobs write into one shared folder; no
two perform the same run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .plan import Run, UsageError

LOGS = ".jobs"  # beside the results: each job's files and output
LEFT = 600  # s before a job's end at which a run stops and is stored


def part_of(runs: Sequence[Run], part: str | None) -> list[Run]:
    """The part I/N of a plan: each N-th run from the I-th on. Raises UsageError."""
    if part is None:
        return [*runs]
    first, _, of = part.partition("/")
    if not (first.isdecimal() and of.isdecimal() and 1 <= int(first) <= int(of)):
        raise UsageError(f"--part: expected I/N with I from 1 to N, got {part!r}")
    return [*runs[int(first) - 1 :: int(of)]]


def commands(
    arguments: Sequence[str], *, out: Path, jobs: int, ranks: int, hours: float
) -> list[list[str]]:
    """The command of each job: `run` with these arguments, under torchrun for several ranks."""
    python, module = [sys.executable, "-m"], ["experiments", "run"]
    if ranks > 1:
        run = [*python, "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", "-m"]
    else:
        run = python
    budget = max(3600 * hours - LEFT, 1800 * hours)
    rest = ["--out", str(out), "--budget", f"{budget:.0f}"]
    return [[*run, *module, *arguments, *rest, "--part", f"{i + 1}/{jobs}"] for i in range(jobs)]


def submit(
    arguments: Sequence[str],
    *,
    out: Path,
    jobs: int,
    ranks: int,
    hours: float,
    cluster: str = "slurm",
    slurm: Mapping[str, str] | None = None,
) -> list[Any]:
    """Submit the jobs; returns submitit's handles. Raises UsageError.

    cluster: "slurm" or "local". slurm: options of sbatch, by name. If the arguments name no device,
    each rank gets a GPU.
    """
    try:
        import submitit
    except ImportError as error:
        raise UsageError("submit needs the package submitit: pip install submitit") from error
    for name, number in {"--jobs": jobs, "--ranks": ranks}.items():
        if number < 1:
            raise UsageError(f"{name}: expected 1 or more, got {number}")
    if not 0 < hours < float("inf"):
        raise UsageError(f"--hours: expected more than 0, got {hours}")
    out = out.absolute()
    each = commands(arguments, out=out, jobs=jobs, ranks=ranks, hours=hours)
    on_cpu = "--device cpu" in " ".join(arguments).replace("=", " ")
    share = {"cpus_per_task": ranks} if on_cpu else {"gpus_per_node": ranks}
    minutes = max(1, round(60 * hours))
    try:
        executor = submitit.AutoExecutor(folder=out / LOGS, cluster=cluster)
        executor.update_parameters(
            name="experiments", nodes=1, tasks_per_node=1, timeout_min=minutes, **share,
            **{f"slurm_{name}": value for name, value in (slurm or {}).items()},
        )  # fmt: skip
        with executor.batch():
            return [executor.submit(subprocess.run, one, check=True) for one in each]
    except (NameError, ValueError, RuntimeError) as error:  # an option that it does not know
        raise UsageError(f"submitit: {error}") from error
