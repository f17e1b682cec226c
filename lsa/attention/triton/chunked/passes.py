"""Chunked mode: attention inside chunks of C tokens, a state that stays on chip between them.

With S and z before a chunk, for the tokens i of the chunk,

    o_i = scale / n_i [ φ(q_i) S + sum_{chunk, j<=i} (φ(q_i)·φ(k_j)) v_j ]
    n_i = scale [ φ(q_i)·z + sum_{chunk, j<=i} φ(q_i)·φ(k_j) ] + eps        (or 1)
    S <- S + sum_{chunk} φ(k_j) v_j^T        z <- z + sum_{chunk} φ(k_j)

Bytes. The mode is bound by memory. At D = K = V = 128 and C = 64, in bf16, a token and head take
4 C D + 4 D^2 = 98 k FLOPs and 8 D = 1 k bytes. Hopper's tensor cores become the limit only at 200
to 300 FLOPs a byte. Designs differ in how often they go through memory:

    design                              forward          with gradients      programs
    least possible                      8 D              22 D
    states of every chunk stored        12 D + 4 D^2/C   40 D + 24 D^2/C     B H T / C
    G segments, three passes back (1)   8 D + 4 D g      32 D + 8 D g        B H G D / BD
    G segments, one pass back (2)       8 D + 4 D g      22 D + 8 D g        B H G

with g = (G - 1) / G. First all segments but one are summed (k and v, or q and do, alone). Then one
pass per segment carries the state along on chip. Up to MOST_ADDED segments, each program adds up
the earlier sums itself; for more, a launch in between scans them. With G = 1 there is nothing to
sum: 8 D. Few heads leave most of a GPU idle at G = 1, so `segments` weighs parallelism against the
8 D g. The sums of (1) and (2) take 4 (K V + K) bytes more a head and segment, each written or read
a few times. Over a long sequence that is nothing. At T = 1024 and D = 64 it can be as much as 8 D,
but so few bytes stay in the L2 cache. `lsa.cost.design_cost` counts both.

(2), one_pass.py, keeps S^T and R^T [V, K] on chip together, and needs neither chunk states nor a
second forward pass. Going backwards, S before a chunk is S after it minus the chunk's own terms, in
float32 and for no more than LONGEST_RECOVERED tokens. Both states and the products of a chunk fit
in registers up to 64 x 64, without a map and without a normaliser.

Everything else takes (1), dkv.py: a pass for dq and one each for dk and dv. dk and dv share one
pass, 4 D bytes less, if R fits whole beside both and heads are not too few. R fits on Hopper up to
128 x 128, on Ampere for the unnormalised sum up to 64 x 64. Normalised, the pass for dq also reads
q (2 D), to form δ from its own rounded sum. Normalised features past 128 (on Ampere past 64 if they
are mapped) cannot. They need o unrounded, stored in float32 and rounded after: 8 D more forwards,
6 D backwards.

Launches are planned once for a call's shapes and its GPU: tuning/plan.py. C = 64 fills the 64 rows
of wgmma with four warps. 128 would double the products inside chunks, and their registers, and save
few bytes. The output's features are split into blocks of 64 (normalised ones up to 128 are
not). The programs of one head run side by side, so that q and k come from the L2 cache the second
time. The normaliser adds 4 bytes a token (den) and a row sum to the forward pass.

With decay (arguments.prefixes) every term is multiplied by its decay: w_ij between two tokens of a
chunk, w_i0 from the state before to token i, w_Cj from token j to the end of the chunk, and w_C0
for the state. These are exponentials of differences of prefix sums. Each difference stays in its
chunk, or in the segments that a program adds up. (2) is not possible: it would divide by the decay.
The gradient of the decay, dg.py, reads S and R around every 64 tokens, and the passes for dq and dk
store these for it in float32. That takes D^2 / 4 bytes a token and head, written once and read
once, and 8 D for the inputs.

A NaN among the values reaches the earlier tokens of its own chunk, since zero times NaN is NaN.
With decay so does one among the keys. Neither reaches a token before the chunk.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...call import Call, Grads, Saved
from ..arguments import (
    addressable,
    as_state,
    empty_grads,
    empty_saved,
    prefixes,
    prepare,
    rounded_grads,
    rounded_saved,
)
from ..tuning.plan import Plan, case_of, exact_is_kept, plan_of
from .dg import empty_kept, run_dg
from .dkv import run_dkv
from .dq import run_dq
from .forward import run_forward
from .one_pass import run_one_pass
from .sums import output_delta, segment_sums


def sums_kept(call: Call) -> int:
    """How many sums between segments forward() returns."""
    return plan_of(call).G - 1


def keeps_exact(call: Call) -> bool:
    """Whether forward() keeps o unrounded. Does not depend on B, T or H, which may be symbols."""
    return exact_is_kept(case_of(call))


def forward(call: Call, cut: tuple[int, int] | None = None, plan: Plan | None = None) -> Saved:
    """o and what the backward pass needs. cut: G and L, in place of the planned ones.

    plan: in place of plan_of's.
    """
    plan = plan or plan_of(call, cut)
    call = prepare(call)
    faded = prefixes(call.g, call.q.shape[1])
    states = segment_sums(call, plan.L, plan.G, prefixes=faded)
    out = empty_saved(call, plan.exact, states)
    run_forward(call, out, plan, faded)
    return rounded_saved(call, out, plan.exact)


def backward(
    call: Call, out: Saved, do: Tensor, dS: Tensor | None, dz: Tensor | None,
    cut: tuple[int, int] | None = None, plan: Plan | None = None,
) -> Grads:  # fmt: skip
    """The gradients, from those of o and of the returned state (None where there is none).

    cut, plan: those of the forward pass.
    """
    plan = plan or plan_of(call, cut)
    call, do, dS, dz = prepare(call), addressable(do), as_state(dS), as_state(dz)
    B, T, H, K, V = call.sizes
    grads = empty_grads(call)
    if plan.one_pass:
        sums = segment_sums(call, plan.L, plan.G, do=do)
        run_one_pass(call, out, do, dS, dz, sums, grads, plan)
        return rounded_grads(call, grads)
    delta = None
    if plan.form_delta:
        delta = torch.empty(B, T, H, dtype=torch.float32, device=do.device)
    elif call.normalize:
        delta = output_delta(call, out.exact if plan.exact else out.o, do)
    faded = prefixes(call.g, T)
    kept_S, kept_R = (empty_kept(call) if call.with_dg else None for _ in range(2))
    run_dq(call, out, do, delta, grads, plan, faded, kept_S, call.with_dg and call.keeps_z)
    sums = segment_sums(call, plan.L, plan.G, do=do, den=out.den, delta=delta, prefixes=faded)
    shared = (call, out, do, dS, dz, delta, sums, grads, plan)
    if plan.dkv:
        run_dkv(*shared, plan.dkv, True, True, faded, kept_R)
    else:
        run_dkv(*shared, plan.dk, True, False, faded, kept_R)
        run_dkv(*shared, plan.dv, False, True, faded)
    if faded is not None and kept_S is not None and kept_R is not None:
        grads = grads._replace(dg=run_dg(call, out, do, delta, faded, kept_S, kept_R))
    return rounded_grads(call, grads)
