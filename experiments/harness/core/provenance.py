"""Provenance of a run: the code, the command, the machine and the versions behind its numbers."""

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
    """kind, name, count and memory_bytes of a run's device, over all ranks of its team."""
    one = describe_share(device)
    return {**one, "count": one["count"] * here().size}


def describe_share(device: torch.device) -> dict[str, Any]:
    """The same for this process's share of the device."""
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
    """B of memory of each rank of the team. Processors share memory; each GPU has its own."""
    memory = describe_share(device)["memory_bytes"]
    return memory if device.type == "cuda" else memory // here().size


def provenance(device: torch.device, experiment: str, seed: int) -> dict[str, Any]:
    """All fields but `seconds`, known at the end, and `corpus`, known when a text is opened."""
    commit = git("rev-parse", "HEAD")
    return {
        "commit": commit or "unknown",
        # Without a commit the code cannot be identified.
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
    """Whether code that can change a result differs from its commit; chapters do not count."""
    return git("status", "--porcelain", "--", "lsa", "experiments") != ""


def command() -> str:
    """The command that started this process, as a user would type it.

    Folders of this machine are reduced to their names; bytes that are not UTF-8 are escaped.
    """
    arguments = []
    for one in sys.argv[1:]:
        option, equals, value = one.rpartition("=")
        value = Path(value).name if Path(value).is_absolute() else value
        text = os.fsencode(f"{option}{equals}{value}").decode(errors="backslashreplace")
        arguments.append(text)
    return shlex.join(["python", "-m", "experiments", *arguments])


def versions() -> dict[str, str | None]:
    """Versions of the packages that a result depends on; None if not installed."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": installed_triton(),
        "numpy": numpy.__version__,
        "cuda": torch.version.cuda,
        "driver": _driver(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def installed_triton() -> str | None:
    """The version of Triton without importing it; None if it is not installed."""
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return None


def _cpu_name() -> str:
    """The processor's name and instruction sets: "AMD EPYC AVX512 BF16".

    Several processor generations are sold under one name, and one may be twice as fast as another.
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
