"""Compiled kernels: registers, shared memory, tensor-core instructions."""

from __future__ import annotations

import re

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.format import in_words
from ..lib.records import Record, Row, have, need, of_config, provenance, rows
from ..lib.tables import Missing

ARCHITECTURES = {80: "Ampere (sm_80)", 90: "Hopper (sm_90)"}
WITH = {"no": "without", "yes": "with"}
MAPS = {"identity": "none", "elu_plus_one": "elu + 1"}

KEYS = ("mode", "width", "feature_map", "normalized", "decay")
WIDTHS = [64, 128, 256]
SERIALISED = "C7515"  # the code of ptxas's warning
INSERTED = {"C7517", "C7519"}  # a wait, and a start: registers were in use
FULL = 250  # of 255 registers, the most for a thread


def compilers_of(records: list[Record]) -> list[str]:
    """The versions of Triton that compiled these records, newest first."""
    versions = {run["config"]["triton"] for run in records}
    return sorted(versions, key=lambda one: [int(n) for n in re.findall(r"\d+", one)], reverse=True)


def newest() -> list[Record]:
    """The stored runs of the newest version of Triton; [] if nothing is stored."""
    records = have("kernel_build")
    return [run for run in records if run["config"]["triton"] == compilers_of(records)[0]]


def _architecture(run: Record) -> str:
    arch = run["config"]["arch"]
    return ARCHITECTURES.get(arch, f"sm_{arch}")


def figure(id: str = "compiled-kernels") -> Explorable | Missing:
    """Registers, shared memory, tensor-core products and bytes of every kernel."""
    records = newest()
    if not records:
        return Missing("kernel_build")
    series = [
        Series(
            {
                "arch": _architecture(run),
                **dict(zip(KEYS, key, strict=True)),
            },
            _built(rows(run, **dict(zip(KEYS, key, strict=True)))),
            source=run["path"],
        )
        for run in sorted(records, key=lambda run: run["config"]["arch"])
        for key in dict.fromkeys(tuple(row[key] for key in KEYS) for row in rows(run))
    ]
    return Explorable(
        id=id,
        caption=(
            "**Some kernels nearly fill the registers, and none spills.** Every kernel of one call "
            f"and its gradient, as Triton {compilers_of(records)[0]} compiles it, with 32 heads of "
            "4,096 tokens."
        ),
        alt=(
            "Bars of registers a thread for each kernel, for Ampere and Hopper. The passes of "
            "chunked mode come close to the 255 that a thread may have."
        ),
        series=series,
        x=Choice(
            "Show",
            [
                Axis("registers", "Registers per thread"),
                Axis("spilled", "Spilled per thread", "B", range=(0, 16)),
                Axis("shared", "Shared memory per program", "KiB", digits=3),
                Axis("products", "Tensor-core instructions"),
                Axis("programs", "Programs", log=10),
                Axis("resident", "Programs that a multiprocessor holds"),
                Axis("traffic", "Least traffic per token and head", "B"),
            ],
        ),
        y=Axis("kernel", "Kernel"),
        color="arch",
        mark="bar",
        controls=[
            Filter("mode", "Mode", options=["chunked", "attention", "recurrent"]),
            Filter("width", "Width of a head, d", options=WIDTHS),
            Filter("feature_map", "Feature map", options=MAPS),
            Filter("normalized", "Normaliser", options=WITH),
            Filter("decay", "Decay", options=WITH),
            Toggle("arch", "Compiled for"),
        ],
        provenance=provenance(records),
        aspect=4 / 3,
    )


KERNELS = {
    "sums_kernel": "sums", "scan_kernel": "scan", "delta_kernel": "δ",
    "decay_gradient_kernel": "pass, dg",
}  # fmt: skip
PASSES = ("dkv_kernel", "tile_kernel", "step_kernel")
ALONE = {"forward_kernel": "o", "dq_kernel": "dq", "one_pass_kernel": "all gradients"}
TILES = ("forward", "dq", "dkv", "one_pass", "tile", "sums")


def kernel_label(name: str) -> str:
    """A kernel's name on the page: "dkv_kernel:dk" -> "pass, dk"."""
    kernel, _, role = name.partition(":")
    if kernel in PASSES or kernel in ALONE:
        return f"pass, {ALONE.get(kernel, role)}"
    return KERNELS[kernel] + (" back" if role == "R" else "")


def _built(compiled: list[Row]) -> dict[str, list]:
    return {
        "kernel": [kernel_label(row["kernel"]) for row in compiled],
        "registers": [row["registers"] for row in compiled],
        "spilled": [row["spilled"] for row in compiled],
        "shared": [row["shared"] / 1024 for row in compiled],
        "products": [row["wgmma"] + row["mma"] for row in compiled],
        "programs": [row["programs"] for row in compiled],
        "resident": [row["resident"] for row in compiled],
        "traffic": [row["traffic"] for row in compiled],
    }


def launches(records: list[Record]) -> list[Row]:
    """All launches, for every architecture. Raises NotMeasuredError if nothing is stored."""
    return need([launch for run in records for launch in rows(run)], "kernel_build: nothing stored")


def tile_launches() -> list[Row]:
    """Hopper's launches without decay that multiply tiles. Raises NotMeasuredError."""
    hopper = rows(of_config(newest(), arch=90), decay="no")
    return [row for row in hopper if row["kernel"].startswith(TILES)]


def least_traffic(arch: int) -> float:
    """Bytes a token and head of all passes of chunked mode, heads of 64, unnormalised."""
    run = of_config(newest(), arch=arch)
    passes = rows(
        run, mode="chunked", width=64, feature_map="identity", normalized="no", decay="no"
    )
    need(passes, f"{run['name']}: no heads of 64 in chunked mode")
    return sum(row["traffic"] for row in passes if not row["kernel"].startswith("s"))


def gradient_passes(arch: int) -> int:
    """Number of kernels for the gradients of heads of 64, neither normalised nor mapped."""
    run = of_config(newest(), arch=arch)
    compiled = rows(
        run, mode="chunked", width=64, feature_map="identity", normalized="no", decay="no"
    )
    return sum(kernel_label(row["kernel"]).startswith(("pass, d", "pass, all")) for row in compiled)


def codes(launch: Row) -> set[str]:
    """The codes of ptxas's warnings of a launch."""
    return {*launch["warnings"].split(", ")}


def numbers() -> dict[str, str]:
    """Numbers for the appendix on kernels: compiled kernels, of the newest version."""

    def new_instructions() -> str:
        tiles = tile_launches()
        return f"{sum(row['wgmma'] > 0 for row in tiles)} of the {len(tiles)}"

    return in_words(
        launches=lambda: f"{len(launches(newest())):,}",
        newest_compiler=lambda: f"Triton {of_config(newest())['config']['triton']}",
        inserted_waits=lambda: sum(bool(INSERTED & codes(row)) for row in launches(newest())),
        full=lambda: sum(row["registers"] >= FULL for row in launches(newest())),
        got_wgmma=new_instructions,
        mma_too=lambda: sum(row["mma"] > 0 < row["wgmma"] for row in tile_launches()),
        mma_alone=lambda: sum(row["mma"] > 0 == row["wgmma"] for row in tile_launches()),
        built_hopper=lambda: f"{least_traffic(90):,.0f}",
        built_ampere=lambda: f"{least_traffic(80):,.0f}",
    )
