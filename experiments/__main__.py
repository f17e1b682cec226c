"""python -m experiments list | run | submit | gpu | check | collect | convert | describe"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import torch

from .catalogue import EXPERIMENTS
from .convert import WAYS, convert
from .harness.core import lease, record, runner
from .harness.core.checking import check_folder
from .harness.core.cluster import part_of, submit
from .harness.core.code import git
from .harness.core.collect import collect
from .harness.core.dictionary import dictionary
from .harness.core.files import in_bytes, one_line, printable
from .harness.core.plan import DeviceLostError, Run, UsageError
from .harness.core.provenance import describe_device, is_edited
from .harness.core.states import state_of
from .harness.core.team import TOLD, Team, here, joined, supposed
from .harness.learning.corpora import opener
from .harness.learning.prepared import Split
from .recipes import RANKED

VERBS = "list | run | submit | gpu | check | collect | convert | describe"
SOURCE = "an archive or folder with the novels, read unless they are in the cache already"
# Faults outside the code are reported in one line.
REPORTED = (UsageError, runner.FailedError, DeviceLostError, record.RecordError, OSError)


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 for success, 1 for a reported error, 128 plus the number of a signal."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):  # a path may have unprintable characters
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = options.do(options)
        sys.stdout.flush()  # now, while a closed pipe can be told from other errors
        return status
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except REPORTED as error:
        team = here()
        if TOLD not in getattr(error, "__notes__", ()):
            rank = f"rank {team.rank}: " if team.size > 1 else ""
            print(f"error: {rank}{one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print(
            "\ninterrupted: what was stored stays; run the same command to go on", file=sys.stderr
        )
        return 128 + getattr(stop, "number", signal.SIGINT)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar=VERBS)

    listing = verbs.add_parser("list", help="the plan, and what is stored of it")
    run = verbs.add_parser("run", help="perform the runs that are not stored yet")
    for verb in (listing, run):
        verb.add_argument("experiments", nargs="*", help="names; all by default")
        verb.add_argument("--device", help="cpu or cuda; the best there is by default")
        verb.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="runs whose config has it, or that `list` names so (name=...); several, by commas "
            "or given again, must all hold",
        )
        verb.add_argument("--smoke", action="store_true", help="tiny runs; needs --out")
        verb.add_argument("--out", type=_folder, default=record.RESULTS, help="results folder")
    listing.add_argument(
        "--ranks", type=int, default=1, metavar="N", help="the plan of so many ranks of torchrun"
    )
    listing.set_defaults(do=_list)
    run.add_argument("--budget", type=float, metavar="SECONDS", help="stop cleanly after this")
    run.add_argument("--force", action="store_true", help="perform stored runs again")
    run.add_argument("--corpus-source", type=_folder, help=SOURCE)
    run.add_argument("--part", metavar="I/N", help="of N parts of the plan, the I-th")
    run.set_defaults(do=_run)

    _add_submit(verbs.add_parser("submit", help="share the plan among jobs of a cluster"))

    gpu = verbs.add_parser("gpu", help="the plan on a GPU of a few minutes, and one archive")
    _add_gpu(gpu)
    gpu.set_defaults(do=_gpu)

    checking = verbs.add_parser("check", help="read and check stored results")
    checking.add_argument("folder", nargs="?", type=_folder, default=record.RESULTS)
    checking.add_argument(
        "--changes", action="store_true", help="name every commit that changed the code since"
    )
    checking.set_defaults(do=_check)

    collecting = verbs.add_parser("collect", help="bring results made elsewhere home")
    collecting.add_argument("source", type=_folder, help="a folder or a .tar archive of results")
    collecting.add_argument("--out", type=_folder, default=record.RESULTS, help="results folder")
    collecting.add_argument("--force", action="store_true", help="replace what is stored")
    collecting.set_defaults(do=_collect)

    converting = verbs.add_parser("convert", help="a trained Llama of which few heads look back")
    _add_convert(converting)
    converting.set_defaults(do=_convert)

    describing = verbs.add_parser("describe", help="write the data dictionary, results/README.md")
    describing.set_defaults(do=_describe)
    return parser


def _add_gpu(gpu: argparse.ArgumentParser) -> None:
    gpu.add_argument("--minutes", type=float, default=9, help="until all is packed; 9 by default")
    gpu.add_argument("--out", type=_folder, required=True, help="results and the archive")
    gpu.add_argument(
        "--from",
        dest="earlier",
        action="append",
        type=_folder,
        default=[],
        metavar="ARCHIVE",
        help="of an earlier lease, or its folder: what is in it is done, or gone on with",
    )
    gpu.add_argument("--device", default="cuda", help="cpu to rehearse")
    gpu.add_argument("--smoke", action="store_true", help="tiny runs that prove the path")
    gpu.add_argument("--corpus-source", type=_folder, help=SOURCE)


def _add_submit(submitting: argparse.ArgumentParser) -> None:
    submitting.add_argument(
        "arguments", nargs="*", metavar="-- ARGUMENT", help="of `run`, which each job performs"
    )
    submitting.add_argument("--jobs", type=int, required=True, help="each on one computer")
    submitting.add_argument("--ranks", type=int, default=1, help="of each job; 1 by default")
    submitting.add_argument("--hours", type=float, required=True, help="that a job may take")
    submitting.add_argument("--out", type=_folder, required=True, help="a folder that all share")
    submitting.add_argument(
        "--cluster", choices=("slurm", "local"), default="slurm",
        help="slurm by default; local: processes here, for a rehearsal",
    )  # fmt: skip
    submitting.add_argument(
        "--slurm", action="append", default=[], metavar="KEY=VALUE",
        help="an option of sbatch, such as partition=gpu; may be given again",
    )  # fmt: skip
    submitting.set_defaults(do=_submit)


def _add_convert(converting: argparse.ArgumentParser) -> None:
    converting.add_argument(
        "--model", type=_folder, metavar="FILE",
        help="a GGUF file or a folder of Hugging Face's; SmolLM2-135M-Instruct by default",
    )  # fmt: skip
    converting.add_argument("--keep", type=int, required=True, help="heads that may look back")
    converting.add_argument("--out", type=_folder, required=True, help="a folder to write to")
    converting.add_argument(
        "--distance", type=int, nargs="+", default=[RANKED], metavar="TOKENS",
        help="after how many tokens what ranks the heads comes again; of several, the first heads "
        f"of each in turn; {RANKED} by default",
    )  # fmt: skip
    converting.add_argument(
        "--heads", choices=WAYS, default="window",
        help="what the others have: the last 64 tokens and the first 4, or a state besides, "
        "whose features are learned in some minutes; window by default",
    )  # fmt: skip
    converting.add_argument(
        "--tokens", type=int, default=0, help="of novels to learn from; 0 by default"
    )
    converting.add_argument("--corpus-source", type=_folder, help=SOURCE)


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got ''")
    return Path(text)


def _list(options: argparse.Namespace) -> int:
    if options.ranks < 1:
        raise UsageError(f"--ranks: expected 1 or more, got {options.ranks}")
    with supposed(options.ranks):
        return _list_plan(options)


def _list_plan(options: argparse.Namespace) -> int:
    # A computer without a GPU, such as a cluster's front end, can list the plan of those with one.
    absent = options.device == "cuda" and not torch.cuda.is_available()
    kind = "cuda" if absent else runner.find_device(options.device).type
    description = None if absent else describe_device(torch.device(kind))
    stored = {(path.parts[-3], path.name) for path in record.paths(options.out, partial=False)}
    for run in _planned(options, kind):
        state = "unknown"  # results are kept by the GPU's name
        if description is not None:
            state = state_of(run, options.out, description)
            name = record.path_of(options.out, run.experiment, description, run.name).name
            if state == "missing" and (run.experiment, name) in stored:
                state = "elsewhere"
        print(f"{run.priority:3d}  {state:10s}{run.experiment:20s}{run.name}{_needs(run, options)}")
    return 0


def _planned(options: argparse.Namespace, kind: str) -> list[Run]:
    """The runs that the arguments choose. Raises UsageError."""
    given = {"smoke": options.smoke, "only": options.only}
    return runner.plan(EXPERIMENTS, options.experiments, kind, **given)


def _needs(run: Run, options: argparse.Namespace) -> str:
    """The memory of a run on these ranks, or the reason why it cannot be spread over them."""
    if not (needs := EXPERIMENTS[run.experiment].memory):
        return ""
    try:
        return f"  {in_bytes(needs(run.config, options.ranks))} a device"
    except UsageError as error:
        return f"  {one_line(error)}"


def _run(options: argparse.Namespace) -> int:
    device = runner.find_device(options.device)
    with joined(device.type) as team:
        return _run_on(team, device, options)


def _runs_of(team: Team, kind: str, options: argparse.Namespace) -> list[Run]:
    """The runs to perform. Raises UsageError for arguments that do not fit, or not this team."""
    runs = part_of(_planned(options, kind), options.part)
    for name in {run.experiment: run for run in runs} if team.size > 1 else ():
        if not EXPERIMENTS[name].spreads:
            known = ", ".join(one for one, its in EXPERIMENTS.items() if its.spreads)
            raise UsageError(f"experiment: expected one of {known} on several ranks, got {name}")
    return runs


def _run_on(team: Team, device: torch.device, options: argparse.Namespace) -> int:
    runner.check_apart(options.out, options.smoke)
    runs = team.first(lambda: _runs_of(team, device.type, options))
    if team.leads and not options.smoke and git("rev-parse", "HEAD") and is_edited():
        print(
            "lsa/ or experiments/ differs from its commit: these results will be marked `dirty`",
            file=sys.stderr,
        )
    corpus = opener(options.corpus_source)
    given = {name: getattr(options, name) for name in ("budget", "force")}
    ended = runner.run_all(EXPERIMENTS, runs, device, options.out, corpus=corpus, **given)
    if team.leads:
        print(f"{runner.new_results(ended)} under {options.out}")
    return 0


def _submit(options: argparse.Namespace) -> int:
    slurm: dict[str, str] = {}
    for one in options.slurm:
        key, equals, slurm[key] = one.partition("=")
        if not equals:
            raise UsageError(f"--slurm: expected key=value, got {one!r}")
    given = {name: getattr(options, name) for name in ("out", "jobs", "ranks", "hours", "cluster")}
    jobs = submit(options.arguments, **given, slurm=slurm)
    print(f"{len(jobs)} jobs: {', '.join(job.job_id for job in jobs)}")
    if options.cluster == "local":
        if failed := [job.job_id for job in jobs if job.exception()]:
            raise runner.FailedError(f"{options.out}: broke off: jobs {', '.join(failed)}")
        print("all have ended")
    print(f"when they have ended: python -m experiments collect {options.out}")
    return 0


def _gpu(options: argparse.Namespace) -> int:
    """Check correctness first, then run the plan by priority until shortly before the deadline."""
    began = time.monotonic()
    seconds = 60 * options.minutes - lease.RESERVE
    if not 0 < seconds < float("inf"):
        raise UsageError(
            f"--minutes: expected more than {lease.RESERVE / 60:.1f}, got {options.minutes}"
        )
    device, corpus = runner.find_device(options.device), opener(options.corpus_source)
    runner.check_apart(options.out, options.smoke)
    runner.check_place(options.out)
    runs = runner.plan(EXPERIMENTS, [], device.type, smoke=options.smoke)
    description = describe_device(device)
    for source in options.earlier:
        collect(EXPERIMENTS, _existing(source), options.out)

    def still_open() -> list[Run]:
        return lease.open_runs(runs, description, options.out, record.RESULTS)

    waiting = still_open()
    print(f"{len(runs)} runs, {len(runs) - len(waiting)} of them stored already", flush=True)
    try:
        sound = lease.go_through(
            EXPERIMENTS, waiting, device, options.out, deadline=began + seconds, corpus=corpus
        )
    finally:
        archive, left = lease.pack(options.out)
        print("\n".join(lease.summary(options.out)))
        print(f"{archive}: {archive.stat().st_size:,} bytes in {time.monotonic() - began:.0f} s")
        print(*(f"left out: {printable(name)}\n" for name in left), sep="", end="")
        print(f"{len(still_open())} runs left")
    if not sound:
        raise runner.FailedError("some runs broke off; see above")
    return 0


def _check(options: argparse.Namespace) -> int:
    if not options.folder.is_dir():
        raise record.RecordError(f"{options.folder}: no such folder")
    total, problems, notes = check_folder(EXPERIMENTS, options.folder, changes=options.changes)
    print("\n".join(problems), end="\n" * bool(problems), file=sys.stderr)
    print("\n".join([*notes, f"{total - len(problems)} of {total} results are sound"]))
    return 1 if problems else 0


def _describe(options: argparse.Namespace) -> int:
    (record.RESULTS / "README.md").write_text(dictionary(EXPERIMENTS), encoding="utf-8")
    return 0


def _collect(options: argparse.Namespace) -> int:
    source = _existing(options.source)
    print("\n".join(collect(EXPERIMENTS, source, options.out, force=options.force)))
    return 0


def _convert(options: argparse.Namespace) -> int:
    def splits() -> Mapping[str, Split]:
        return opener(options.corpus_source)("novels").splits

    asked = {"keep": options.keep, "way": options.heads, "tokens": options.tokens}
    asked["distances"] = options.distance
    convert(options.model, options.out, **asked, splits=splits)
    print(f"{options.out}: for lsa.llama_files.load_llama, or lsa.hugging_face.load_converted")
    return 0


def _existing(source: Path) -> Path:
    if not source.exists():
        raise record.RecordError(f"{source}: no such file or folder")
    return source


if __name__ == "__main__":
    sys.exit(main())
