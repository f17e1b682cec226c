"""Bytes that the interpreted kernels move, compared with the cost model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from lsa.cost import design_cost

from ..lib.tables import Table

if TYPE_CHECKING:
    from lsa.attention.call import Call
    from lsa.attention.triton.tuning.plan import Plan

CHUNK = 64
SEGMENTS = (1, 3)
DESIGNS = {"three passes back": False, "one pass back": True}
AGREES = 0.05  # allowed difference of the two, as a share of the model's


def beside_account(q: Tensor, k: Tensor, v: Tensor, do: Tensor) -> Table | None:
    """Bytes a token and head by design and number of segments, for one head in 32 bits.

    None if Triton is not installed, with a printed line. Kernels have to be interpreted: see
    `interpreted`, which may only be imported then.
    """
    from . import interpreted

    if not interpreted.installed:
        print("Not run: Triton is not installed here.")
        return None
    lines = []
    for G in SEGMENTS:
        for name, fused in DESIGNS.items():
            counted = _counted((q, k, v, do), G, fused)
            pairs = list(zip(counted, _accounted(q.shape, G, fused), strict=True))
            assert all(abs(a - b) < AGREES * b for a, b in pairs), (name, G, pairs)
            lines.append([f"{name}, G = {G}", *(f"{n:,.0f}" for pair in pairs for n in pair)])
    titles = ["", "forward: counted", "by account", "back: counted", "by account"]
    return Table(titles, lines, wrap=True)


def _planned(call: Call, cut: tuple[int, int], fused: bool) -> Plan:
    """The plan of a call with these segments, chunks of one length, and one pass back or three."""
    from lsa.attention.triton.tuning.plan import plan_of

    plan = plan_of(call, cut)
    each = {name: replace(getattr(plan, name), C=CHUNK) for name in ("forward", "dq", "dk", "dv")}
    return replace(plan, **each, one_pass=each["dq"] if fused else None)


def _counted(tensors: tuple[Tensor, ...], G: int, fused: bool) -> list[float]:
    """Bytes a token and head, forwards and backwards, counted by the interpreter."""
    from lsa.attention.call import Call
    from lsa.attention.triton.chunked import passes as chunked

    from .interpreted import moved

    q, k, v, do = tensors
    _, T, H, D = q.shape
    call = Call(q, k, v, scale=D**-0.5, normalize=False)
    plan = _planned(call, (G, T // G), fused)
    with moved() as forth:
        o = chunked.forward(call, plan=plan)
    with moved() as back:
        chunked.backward(call, o, do, None, None, plan=plan)
    return [(count.loaded + count.stored) / (T * H) for count in (forth, back)]


def _accounted(shape: tuple[int, ...], G: int, fused: bool) -> tuple[float, float]:
    """The same by formula; the state after the last token, S, dS and dz, is added."""
    _, T, H, D = shape
    design = "one pass" if fused else "three passes"
    forward, both = (
        design_cost(design, T, H, D, gradients=gradients, itemsize=4, cut=(G, T // G)).bytes
        for gradients in (False, True)
    )
    S, z = 4 * D * D / T, 4 * D / T
    return forward + S, both - forward + S + z + S * fused  # one pass back reads S again
