"""Compile the kernels that a call would launch, for a GPU that need not be there.

The calls run on tensors of torch's meta device, which have shapes and strides but no storage;
their launches are recorded instead of made, and each is compiled as the GPU would have it.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime import JITFunction

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
        """How many programs run."""
        return math.prod(self.grid)

    @property
    def name(self) -> str:
        """The kernel, and which of its roles it plays."""
        role = self.arguments.get("ROLE") or ("R" if self.arguments.get("REVERSE") else "")
        return self.kernel.fn.__name__ + (f":{role}" if role else "")


@dataclass(frozen=True)
class Built:
    """What the compiler made of a launch. spilled: bytes a thread stores for want of registers."""

    registers: int
    spilled: int
    shared: int
    wgmma: int
    mma: int
    fma: int


def record_launches(call: Callable[[], Any]) -> list[Launched]:
    """The launches that `call` makes, none of which happens."""
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
    """The kernel with its arguments specialised the way a launch on the GPU does it."""
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


def build(launched: Launched, arch: int) -> Built:
    """Compile a recorded launch for compute capability `arch` (80, 90) and read its resources."""
    target = GPUTarget("cuda", arch, 32)
    compiled = triton.compile(source(launched), target=target, options=launched.options)
    ptx = compiled.asm["ptx"]
    registers, stack = resources(compiled.asm["cubin"])
    return Built(
        registers,
        spilled(ptx, arch) if stack else 0,
        compiled.metadata.shared,
        len(re.findall(r"wgmma\.mma_async", ptx)),
        len(re.findall(r"(?<!wg)\bmma\.sync", ptx)),
        len(re.findall(r"\bfma\.rn\.f32", ptx)),
    )


def resources(cubin: bytes) -> tuple[int, int]:
    """Registers a thread and bytes of stack of the one kernel in a cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [NVIDIA / "cuobjdump", "--dump-resource-usage", file.name],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    registers, stack = _numbers(r"REG:(\d+) STACK:(\d+)", text)
    return registers, stack


def spilled(ptx: str, arch: int) -> int:
    """Bytes a thread spills. A stack alone does not tell: a division's subroutine has one too."""
    target = f"sm_{arch}a" if arch >= 90 else f"sm_{arch}"
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        text = subprocess.run(
            [NVIDIA / "ptxas", "-v", "--gpu-name", target, file.name, "-o", os.devnull],
            capture_output=True, text=True, check=True,
        ).stderr  # fmt: skip
    return _numbers(r"(\d+) bytes spill stores", text)[0]


def _numbers(pattern: str, text: str) -> list[int]:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"NVIDIA's tools: expected {pattern!r} in their output, got {text:.200}")
    return [int(number) for number in found.groups()]
