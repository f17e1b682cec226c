"""Where a number comes from: the code, the command, the machine and the versions behind a run."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy
import torch

from lsa.compat import has_bfloat16

from .code import code_digest, git
from .team import here


def describe_device(device: torch.device) -> dict[str, Any]:
    """kind, name, count and memory_bytes of what a run computes on, on all ranks of its team."""
    one = describe_share(device)
    return {**one, "count": one["count"] * here().size}


def describe_share(device: torch.device) -> dict[str, Any]:
    """The same of what this process has of it."""
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        memory = properties.total_memory
        return {"kind": "cuda", "name": properties.name, "count": 1, "memory_bytes": memory}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "kind": "cpu",
        "name": _cpu_name(),
        "count": torch.get_num_threads(),
        "memory_bytes": memory,
    }


def memory_of_rank(device: torch.device) -> int:
    """B that a rank of the team has. Processors share what there is; each GPU has its own."""
    memory = describe_share(device)["memory_bytes"]
    return memory if device.type == "cuda" else memory // here().size


def provenance(device: torch.device, experiment: str, seed: int) -> dict[str, Any]:
    """Everything but `seconds`, known at the end, and `corpus`, known once a text is opened."""
    commit = git("rev-parse", "HEAD")
    return {
        "commit": commit or "unknown",
        # Without a commit nobody can say that the code is one.
        "dirty": commit is None or is_edited(),
        "code": code_digest(experiment),
        "command": command(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": 0.0,
        "seed": seed,
        "corpus": None,
        "device": describe_device(device),
        "versions": versions(),
    }


def is_edited() -> bool:
    """Whether the code differs from its commit, where it can change a result; not in a chapter."""
    return git("status", "--porcelain", "--", "lsa", "experiments") != ""


def command() -> str:
    """The command that started this process, as someone else would type it.

    This machine's folders by their names alone; bytes that are no UTF-8 are escaped.
    """
    arguments = []
    for one in sys.argv[1:]:
        option, equals, value = one.rpartition("=")
        value = Path(value).name if Path(value).is_absolute() else value
        text = os.fsencode(f"{option}{equals}{value}").decode(errors="backslashreplace")
        arguments.append(text)
    return shlex.join(["python", "-m", "experiments", *arguments])


def versions() -> dict[str, str | None]:
    """Versions of what a result depends on; None for what is not installed."""
    try:
        import triton

        triton_version = triton.__version__
    except ImportError:
        triton_version = None
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton_version,
        "numpy": numpy.__version__,
        "cuda": torch.version.cuda,
        "driver": _driver(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def installed_triton() -> str | None:
    """The version of Triton; None where there is none. Not imported: that is for kernels to do."""
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return None


def _cpu_name() -> str:
    """The processor as its maker calls it, and its instructions: "AMD EPYC AVX512 BF16".

    Processors of several generations are sold by one name, of which one is twice as fast.
    """
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    instructions = torch.backends.cpu.get_cpu_capability().replace("DEFAULT", "")
    return " ".join(f"{name} {instructions} {'BF16' if has_bfloat16() else ''}".split())


def _driver() -> str | None:
    if not torch.cuda.is_available():
        return None
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None
