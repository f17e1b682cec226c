"""Compiling the kernels that a call would launch, for a GPU that need not be present.

The calls run on tensors of torch's meta device, which have shapes and strides but no storage. Their
launches are recorded instead of made, and each is compiled for the GPU.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime import JITFunction

from lsa.attention import triton as kernels

from ..core.code import bare

POINTERS = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16"}
OPTIONS = ("num_warps", "num_stages")
NVIDIA = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


@dataclass(frozen=True)
class Launched:
    """One launch: the kernel, its arguments by name, its options and its grid."""

    kernel: JITFunction
    arguments: dict[str, Any]
    options: dict[str, int]
    grid: tuple[int, ...]

    @property
    def programs(self) -> int:
        """The number of programs."""
        return math.prod(self.grid)

    @property
    def name(self) -> str:
        """The kernel's name and its role."""
        given = self.arguments
        role = given.get("ROLE") or ("R" if given.get("REVERSE") else "")
        if "DK" in given:
            role = " ".join(name.lower() for name in ("DK", "DV") if given[name])
        return self.kernel.fn.__name__ + (f":{role}" if role else "")


@dataclass(frozen=True)
class Built:
    """A compiled launch.

    spilled: bytes a thread stores for lack of registers.
    resident: programs that a multiprocessor holds at once.
    warnings: the codes of ptxas's warnings. C7515: a wgmma waits for the one before it. C7517 and
        C7519: ptxas has inserted a wait and a start because registers are in use.
    cubin: the machine code.
    """

    registers: int
    spilled: int
    shared: int
    wgmma: int
    mma: int
    resident: int
    warnings: tuple[str, ...]
    cubin: bytes = field(repr=False)


def kernel_digests(package: ModuleType = kernels) -> dict[str, str]:
    """A digest of each kernel module, to detect outdated compiled tables.

    It covers the code alone: comments and docstrings do not change it.
    """
    root = Path(package.__path__[0])
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(
            bare(path.name, path.read_bytes()).encode()
        ).hexdigest()[:16]
        for path in sorted(root.rglob("*.py"))
    }


def record_launches(call: Callable[[], Any]) -> list[Launched]:
    """Record the launches that `call` would make, without making them."""
    launched = []

    def run(self: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        options = {name: kwargs.pop(name) for name in OPTIONS if name in kwargs}
        arguments = dict(zip(self.arg_names, args, strict=False)) | kwargs
        launched.append(Launched(self, arguments, options, tuple(grid)))

    real = JITFunction.run
    JITFunction.run = run
    try:
        call()
    finally:
        JITFunction.run = real
    return launched


def source(launched: Launched) -> ASTSource:
    """The kernel with its arguments specialised as a launch on the GPU would do it."""
    signature, constants, attributes = {}, {}, {}
    for i, parameter in enumerate(launched.kernel.params):
        name, value = parameter.name, launched.arguments[parameter.name]
        special = not parameter.do_not_specialize
        if parameter.is_constexpr or (type(value) is int and value == 1 and special):
            signature[name], constants[(i,)] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[name] = POINTERS[value.dtype]
            attributes[(i,)] = [["tt.divisibility", 16]]
        elif isinstance(value, float):
            signature[name] = "fp32"
        else:
            signature[name] = "i64" if value >= 2**31 else "i32"
            if value % 16 == 0 and special:
                attributes[(i,)] = [["tt.divisibility", 16]]
    return ASTSource(launched.kernel, signature, constants, attributes)


_built: dict[str, Built] = {}


def build(launched: Launched, arch: int) -> Built:
    """Compile a recorded launch for compute capability `arch` (80, 90) and read its resources.

    Launches that differ only in arguments without specialisation are compiled once.
    """
    made = source(launched)
    parts = (made.fn.cache_key, made.signature, made.constants, made.attrs, launched.options, arch)
    key = repr(parts)
    if key not in _built:
        _built[key] = _compiled(made, launched.options, arch)
    return _built[key]


def _compiled(made: ASTSource, options: dict[str, int], arch: int) -> Built:
    compiled = triton.compile(made, target=GPUTarget("cuda", arch, 32), options=options)
    ptx = compiled.asm["ptx"]
    registers, spilled, warnings = assembled(ptx, arch)
    shared = compiled.metadata.shared
    return Built(
        registers,
        spilled,
        shared,
        len(re.findall(r"wgmma\.mma_async", ptx)),
        len(re.findall(r"(?<!wg)\bmma\.sync", ptx)),
        resident(registers, shared, options["num_warps"], arch),
        warnings,
        compiled.asm["cubin"],
    )


def resources(launched: Launched, built: Built) -> dict[str, Any]:
    """The columns that experiments store of a compiled launch."""
    return {
        "programs": launched.programs,
        "warps": launched.options["num_warps"],
        "registers": built.registers,
        "spilled": built.spilled,
        "shared": built.shared,
        "resident": built.resident,
        "warnings": ", ".join(built.warnings) or "none",
    }


def resident(registers: int, shared: int, warps: int, arch: int) -> int:
    """Number of programs that a multiprocessor of compute capability 8.0 or 9.0 holds.

    It has 65,536 registers, allocated by 8 a thread, and at most 64 warps and 32 programs. It has
    164 or 228 KiB of shared memory; each program takes 1 KiB more than it asks for.
    """
    by_registers = 65536 // (-(-registers // 8) * 8 * 32 * warps)
    by_shared = (228 if arch == 90 else 164) * 1024 // (shared + 1024)
    return min(by_registers, by_shared, 64 // warps, 32)


def assembled(ptx: str, arch: int) -> tuple[int, int, tuple[str, ...]]:
    """Registers and spilled bytes a thread, and the codes of ptxas's warnings."""
    target = f"sm_{arch}a" if arch >= 90 else f"sm_{arch}"
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        text = subprocess.run(
            [NVIDIA / "ptxas", "-v", "--gpu-name", target, file.name, "-o", os.devnull],
            capture_output=True, text=True, check=True,
        ).stderr  # fmt: skip
    registers, spilled = (
        _number(pattern, text) for pattern in (r"Used (\d+) registers", r"(\d+) bytes spill stores")
    )
    return registers, spilled, tuple(sorted(set(re.findall(r"\((C\d+)\)", text))))


@cache
def loop_length(cubin: bytes) -> int:
    """Instructions of a warp in one round of the longest loop with products, or of any loop."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [NVIDIA / "nvdisasm", "-c", file.name], capture_output=True, text=True, check=True
        ).stdout
    labels: dict[str, int] = {}
    code: list[str] = []
    for line in text.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = len(code)
        elif instruction := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?);", line):
            code.append(instruction[1])
    loops = []
    for at, instruction in enumerate(code):
        branch = re.search(r"\bBRA\b.*`\((\.L_x_\d+)\)", instruction)
        # A branch backwards. One to itself is the padding after the end.
        if branch and labels.get(branch[1], at) < at:
            body = code[labels[branch[1]] : at + 1]
            loops.append((any("MMA" in one for one in body), len(body)))
    return max(loops, default=(False, 0))[1]


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"NVIDIA's tools: expected {pattern!r} in their output, got {text:.200}")
    return int(found[1])
