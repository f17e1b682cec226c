"""Linear attention compiled for the CPU's vector instructions: body.cpp and kernel.inl.

It is built when the package is installed, or by `make`, where there is a C++ compiler. Nothing is
compiled while a program runs. `lsa.backends()` says whether it runs here, and if not, why plain
torch does (eager.py). Its interface is plain C, so that it fits any torch. Threads come from
torch's stable interface (`torch_parallel_for`, torch 2.10); without it there is one thread.

All tensors here are in the public layout: q, k [B, T, H, K]; v, o [B, T, H, V]; g [B, T, H], or
[1, 1, H]; den [B, T, H]; S [B, H, K, V]; z [B, H, K]. The body reads and writes q, k, v, o and
their gradients in float32 or bfloat16. All else is float32, and so are its sums.
"""

from __future__ import annotations

import ctypes
import os
import struct
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..call import INPUTS, Call, Grads, Saved, check_layouts
from ..feature_maps import FEATURE_MAPS, feature_slope

# Short chunks have few products inside, but each chunk reads and writes the state.
CHUNK_SIZE = 32
LONGEST_CHUNK = 1024  # a longer one only fills memory
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAPS = {"identity": 0, "elu_plus_one": 1, "relu": 2}
# Values: "torch" for plain torch, "compiled" for an error if there is no compiled body, "avx2",
# "avx512" or "neon" for one instruction set.
SETTING = "LSA_CPU"
CALL = "11q2f15q"  # the struct `Call` of body.cpp up to its tensors; each of those takes 5q more
# Whatever torch's defaults are at import: the body writes into memory that is made from it.
NOTHING = torch.empty(0, dtype=torch.float32, device="cpu")


class Library(NamedTuple):
    """The compiled body. run: lsa_run. name: its instruction set. What it is called with."""

    run: Any
    name: str
    body: int
    parallel_for: int


def open_body(wanted: str | None) -> Library | str:
    """The compiled body as LSA_CPU asks for it, or in a few words why plain torch runs.

    Raises ValueError when this processor or the installed package lacks what is asked for.
    """
    if wanted == "torch":
        return f"{SETTING}=torch asks for it"
    found = _load(None if wanted in (None, "", "compiled") else wanted.encode())
    if wanted and isinstance(found, str):
        expected = "torch, compiled, or of avx2, avx512 and neon what was built and this CPU has"
        raise ValueError(f"{SETTING}: expected {expected}, got {wanted!r}: {found}")
    return found


def _load(name: bytes | None) -> Library | str:
    folder = Path(__file__).parent
    built = [path for end in EXTENSION_SUFFIXES if (path := folder / f"body{end}").exists()]
    if not built:
        return "no compiled body was built at installation, which needs a C++ compiler"
    try:
        library = ctypes.CDLL(str(built[0]))
        library.lsa_sources.restype = ctypes.c_char_p
        library.lsa_body.restype = ctypes.POINTER(ctypes.c_char_p)  # it begins with its name
    except (OSError, AttributeError) as error:
        return f"{built[0].name} cannot be loaded: {error}"
    sources = [folder / "body.cpp", folder / "kernel.inl"]
    if all(path.exists() for path in sources):  # a wheel has no sources
        digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
        if library.lsa_sources() != digest.encode():
            return f"{built[0].name} was built from other sources, as make would do anew"
    library.lsa_run.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    if has := library.lsa_body(name):
        return Library(library.lsa_run, has[0].decode(), _address(has), _parallel_for())
    return "this processor lacks the vector instructions"


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _parallel_for() -> int:
    """The address of torch_parallel_for, or 0 in a torch that lacks it."""
    for path in (Path(torch.__file__).parent / "lib").glob("libtorch_cpu.*"):
        return _address(getattr(ctypes.CDLL(str(path)), "torch_parallel_for", None))
    return 0


BODY = open_body(os.environ.get(SETTING))
# torch.compile can read a plain bool; it could not follow a library handle.
AVAILABLE = isinstance(BODY, Library)


def takes(q: Tensor) -> bool:
    """Whether the compiled body computes a call with this q."""
    return AVAILABLE and q.dtype in DTYPES and q.is_cpu


def _read(x: Any, dtype: torch.dtype = torch.float32) -> Any:
    """A tensor, or None, as the body reads it: in this dtype, signs as memory has them."""
    return x if x is None else x.to(dtype).resolve_neg()


def _as_read(call: Call) -> Call:
    """The same call as the body reads it, q and k mapped if it lacks their feature map."""
    check_layouts(call)
    fits = ready = call.feature_map in MAPS
    for x in call[:INPUTS]:
        ready = ready and (x is None or (x.dtype is torch.float32 and not x.is_neg()))
    if ready:
        return call
    dtype = torch.bfloat16 if fits and call.q.dtype is torch.bfloat16 else torch.float32
    q, k, v = (_read(x, dtype) for x in call[:3])
    if not fits:
        q, k = (FEATURE_MAPS[call.feature_map](x) for x in (q, k))
    return Call._make((q, k, v, *map(_read, call[3:INPUTS]), *call[INPUTS:]))


def forward(call: Call, *, saves: bool = True) -> Saved:
    """The forward pass of a call that `takes` accepts.

    saves: keep what the gradient needs; else only o, and the state if it is returned.
    """
    own = _as_read(call)
    B, T, H, K, V = call.sizes
    empty = NOTHING.new_empty
    # The gradient of a normalised sum needs o before it is rounded.
    exact = saves and call.normalize
    o = (empty if exact else own.q.new_empty)(B, T, H, V)
    S_T, z_T = NOTHING, NOTHING
    if saves or call.with_z:
        S_T, z_T = empty(B, H, K, V), empty((B, H, K) if call.keeps_z else 0)
    den = empty((B, T, H) if call.normalize else 0) if saves else NOTHING
    _run(own, (o,), (own.S, own.z, S_T, z_T, den))
    rounded = o if call.v.dtype is o.dtype else o.to(call.v.dtype)
    if not saves:
        return Saved(rounded, S_T, z_T, den, den, den)
    # No two results share memory, and none shares it with an argument.
    return Saved(rounded, S_T, z_T, den, empty(0), o if exact and rounded is not o else empty(0))


def backward(
    call: Call, saved: Saved, do: Tensor, dS_T: Tensor | None, dz_T: Tensor | None
) -> Grads:
    """The gradients of a call that `takes` accepts."""
    own = _as_read(call)
    B, T, H, K, V = call.sizes
    empty = NOTHING.new_empty
    dq, dk, dv = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in own[:3])
    dS, dz = empty(B, H, K, V), empty(B, H, K)
    dg = empty((B, T, H) if call.with_dg else 0)
    o = saved.exact if saved.exact.numel() else saved.o
    states = own.S, own.z, None, None, saved.den, _read(dS_T), _read(dz_T), dS, dz, dg
    _run(own, (o, _read(do, own.v.dtype), dq, dk, dv), states)
    if call.feature_map not in MAPS:
        dq *= feature_slope(call.q.float(), call.feature_map)
        dk *= feature_slope(call.k.float(), call.feature_map)
    dq, dk, dv = (x.to(call.q.dtype) for x in (dq, dk, dv))
    if call.g is not None and call.with_dg:
        dg = dg.sum_to_size(call.g.shape)
    return Grads(dq, dk, dv, dS, dz, dg)


def _run(x: Call, others: tuple[Tensor, ...], states: tuple[Tensor | None, ...]) -> None:
    """Call the body. others: o; for gradients do, dq, dk, dv. states: `Call`'s, in its order."""
    assert isinstance(BODY, Library)  # `takes` has checked it
    B, T, H, K, V = x.sizes
    # In a short text, reading and writing a state costs more than the products that it saves.
    chunk = min(x.chunk_size or (T if T <= K else CHUNK_SIZE), LONGEST_CHUNK)
    token = 1 if len(others) == 1 else chunk
    chunk = {"attention": T, "recurrent": token}.get(x.mode, chunk)
    # Contiguous copies, referenced until the call is over.
    kept = [y if y is None or y is NOTHING else y.contiguous() for y in states]
    pointers = [0 if y is None or y is NOTHING else y.data_ptr() for y in kept]
    places: list[int] = []
    for y in (x.q, x.k, x.v, *others):
        batch, time, head, one = y.stride()
        if one != 1:
            kept.append(y := y.contiguous())
            batch, time, head, _ = y.stride()
        places += y.data_ptr(), batch, time, head, y.dtype is torch.bfloat16
    g = 0, 0, 0, 0
    if x.g is not None:  # a size of one stands for all: stride 0
        batch, time, head = x.g.stride()
        n_batch, n_time, _ = x.g.shape
        g = x.g.data_ptr(), batch * (n_batch > 1), time * (n_time > 1), head
    packed = struct.pack(
        f"{CALL}{len(places)}q", BODY.body, BODY.parallel_for, torch.get_num_threads(),
        B, T, H, K, V, max(1, min(chunk, T)), MAPS.get(x.feature_map, 0), x.normalize,
        x.scale, x.eps, *g, 0, *pointers, *(10 - len(pointers)) * (0,), *places,
    )  # fmt: skip
    if BODY.run(packed, len(packed)):
        raise MemoryError(f"linear_attention: no memory for a text of {T} tokens")
