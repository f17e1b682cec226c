"""Chunked mode: attention inside chunks of C tokens, a state that stays on chip between them.

With S and z before a chunk, for the tokens i of the chunk,

    o_i = scale / n_i [ φ(q_i) S + sum_{chunk, j<=i} (φ(q_i)·φ(k_j)) v_j ]
    n_i = scale [ φ(q_i)·z + sum_{chunk, j<=i} φ(q_i)·φ(k_j) ] + eps        (or 1)
    S <- S + sum_{chunk} φ(k_j) v_j^T        z <- z + sum_{chunk} φ(k_j)

Bytes. The mode is bound by memory: at D = K = V = 128 and C = 64, in bf16, 4 C D + 4 D^2 = 98 k
FLOPs meet 8 D = 1 k bytes a token and head, below the 200 to 300 FLOPs a byte where Hopper's
tensor cores would be the limit. What can be chosen is how often memory is gone through:

    design                              forward          with gradients      programs
    least possible                      8 D              22 D
    states of every chunk stored        12 D + 4 D^2/C   40 D + 24 D^2/C     B H T / C
    G segments, three passes back (1)   8 D + 4 D g      32 D + 8 D g        B H G D / BD
    G segments, one pass back (2)       8 D + 4 D g      22 D + 8 D g        B H G

with g = (G - 1) / G: the segments but one are first summed (k and v, or q and do, alone), a scan
over G states of 4 (K V + K) bytes a head makes the state before each, and one pass per segment
carries it along on chip. With G = 1 there is nothing to sum: 8 D. Few heads leave most of a GPU
idle at G = 1, so `segments` weighs idle multiprocessors against the 8 D g. The states of (1) and
(2) come on top: each is written or read 4 times forwards, and 6 or 5 times more backwards. Over a
long sequence that is nothing; at T = 1024 and D = 64 it can be as much as 8 D, though few enough
bytes in all to stay in the L2 cache. `lsa.cost.design_cost` counts both.

(2) keeps S^T and R^T [V, K] of shared.py on chip together and needs neither chunk states
nor a second forward pass: walking back, S before a chunk is S after it less what the chunk had
added, in float32 and for no more than LONGEST_RECOVERED tokens. Both states and the products of
a chunk have to fit in registers: up to 64 x 64 without a normaliser (with a map, or a gradient
of the last state, up to 48 bytes a thread do not). Everything else takes (1), one launch of
pass_kernel for each of dq, dk and dv; normalised, its dq reads q too (2 D). Normalised features
past 128 (on Ampere past 64 if they are mapped) need o unrounded: stored in float32 and rounded
after, 8 D more forwards, 6 D backwards.

C = 64 fills wgmma's 64 rows with four warps; 128 would double the products inside chunks, and
their registers, to save nothing that memory notices. The output's features are split into blocks
of 64 (BD), programs of one head side by side, so that q and k come from the L2 cache the second
time. Where that would spill registers, chunks or blocks are smaller (`pass_launch`). The
normaliser adds 4 bytes a token (den) and a row sum to the forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import triton
from torch import Tensor

from .roles import backward_kernel, pass_kernel
from .segment_sums import output_delta, segment_sums
from .segments import LONGEST_RECOVERED, segments
from .shared import (
    Gradients,
    Outputs,
    Precision,
    Problem,
    Role,
    arithmetic_fits,
    block,
    dk_role,
    dq_role,
    dv_role,
    empty_gradients,
    empty_outputs,
    forward_role,
    large,
    multiprocessors,
    pointer,
    prepare,
    rounded_gradients,
    rounded_outputs,
)


@dataclass(frozen=True)
class Launch:
    """C tokens a chunk, BD features of the output a program."""

    C: int
    BD: int
    num_warps: int
    num_stages: int


BACKWARD = Launch(64, 64, 8, 3)


def pass_launch(problem: Problem, role: Role) -> Launch:
    """The configuration of pass_kernel: the widest that spills no registers.

    Found by compiling every choice for compute capabilities 8.0 and 9.0; the experiment
    kernel_build keeps what came of it. float32 forms its products without tensor cores, whose
    operands take the more registers the wider the state: past 128 it does spill.
    """
    dtype, normalize = problem.q.dtype, problem.normalize
    A, D = block(role.a.shape[-1]), role.c.shape[-1]
    if dtype == torch.float32:
        return Launch(16, block(D, 64 if A <= 64 else 16), 4 if A <= 32 else 8, 1)
    # Where dq forms δ, a program holds all of the output's features.
    whole = role.name == "dq" and forms_delta(problem)
    if A > 128:
        if dtype == torch.bfloat16 and not normalize and large(problem.q.device):
            # A map has its results in shared memory beside what it was loaded from.
            return Launch(64, block(D, 32), 8, 3 if problem.feature_map == "identity" else 2)
        return Launch(16, block(D) if whole else block(D, 32), 8, 2)
    BD = block(D, 128 if whole else 64)
    if not large(problem.q.device):
        return Launch(32 if max(A, BD) <= 64 else 16, BD, 8, 3 if whole else 2)
    if dtype == torch.float16:
        return Launch(16 if BD > 64 else 32, BD, 8, 2)
    mapped = problem.feature_map != "identity"
    if whole and BD > 64:
        return Launch(16, BD, 8, 3) if mapped else Launch(32, BD, 8, 2)
    if normalize and role.name == "dk" and (A > 64 or mapped):
        return Launch(64, min(BD, 32), 8, 3 if A > 64 else 2)
    if normalize and role.name == "dq" and A > 64:
        return Launch(64, BD, 8, 3)
    few = A <= 64 and (role.name == "o" or not normalize or (whole and mapped))
    return Launch(64, BD, 4 if few else 8, 2)


def forms_delta(problem: Problem) -> bool:
    """Whether a program of the dq pass holds all of K, and so forms δ by itself.

    float32 inputs have no need of it: their o is not rounded, and δ comes from there.
    """
    rounded = problem.q.dtype != torch.float32
    # With a map it takes φ(k) in two tiles, for which an Ampere's registers are too few past 64.
    split = problem.feature_map != "identity" and problem.q.dtype == torch.bfloat16
    most = 64 if split and not large(problem.q.device) else 128
    return problem.normalize and rounded and problem.sizes[3] <= most


def plan(problem: Problem) -> tuple[int, int]:
    """G and L for this problem on its device."""
    B, T, H, _, _ = problem.sizes
    longest = LONGEST_RECOVERED if fits_fused(problem) else None
    return segments(B * H, T, multiprocessors(problem.q.device), longest)


def boundaries(problem: Problem) -> int:
    """How many states between segments forward() returns."""
    return plan(problem)[0] - 1


def keeps_exact(problem: Problem) -> bool:
    """Whether the backward pass needs o unrounded: where no program can form δ by itself."""
    rounded = problem.q.dtype in (torch.float16, torch.bfloat16)
    return problem.normalize and rounded and not forms_delta(problem)


def forward(problem: Problem, cut: tuple[int, int] | None = None) -> Outputs:
    """o and what the backward pass needs. cut: G and L, in place of the planned ones."""
    problem = prepare(problem)
    G, L = cut or plan(problem)
    states = segment_sums(problem, L, G, first=problem.S, first_z=problem.z)
    out = replace(empty_outputs(problem, keeps_exact(problem)), states=states)
    role = forward_role(problem, out)
    run_pass(problem, role, states, G, L, out.den, None)
    return rounded_outputs(problem, out, keeps_exact(problem))


def backward(
    problem: Problem, out: Outputs, do: Tensor, dS: Tensor | None, dz: Tensor | None,
    cut: tuple[int, int] | None = None, fused: bool | None = None,
) -> Gradients:  # fmt: skip
    """The gradients, from those of o and of the returned state (None where there is none).

    fused: whether one pass gives all three, in place of the planned choice.
    """
    problem, do = prepare(problem), arithmetic_fits(do)
    dS, dz = (None if d is None else d.to(torch.float32).contiguous() for d in (dS, dz))
    B, T, H, K, V = problem.sizes
    G, L = cut or plan(problem)
    grads = empty_gradients(problem)
    if fits_fused(problem) if fused is None else fused:
        R = segment_sums(problem, L, G, do=do, o=out.o, den=out.den, first=dS, first_z=dz)
        run_backward(problem, out, do, dS, dz, R, grads, G, L, BACKWARD)
        return rounded_gradients(problem, grads)
    delta = None
    if forms_delta(problem):
        delta = torch.empty(B, T, H, dtype=torch.float32, device=do.device)
    elif problem.normalize:
        delta = output_delta(problem, out.exact if out.exact.numel() else out.o, do)
    run_pass(problem, dq_role(problem, do, grads), out.states, G, L, out.den, delta)
    R = segment_sums(problem, L, G, do=do, den=out.den, delta=delta, first=dS, first_z=dz)
    for role in (dk_role(problem, do, grads, dS, dz), dv_role(problem, do, grads, dS)):
        run_pass(problem, role, R, G, L, out.den, delta)
    return rounded_gradients(problem, grads)


def fits_fused(problem: Problem) -> bool:
    """Whether both states and a chunk's products fit in registers without spilling."""
    narrow = max(problem.sizes[3:]) <= 64 and problem.q.dtype == torch.bfloat16
    return narrow and not problem.normalize and large(problem.q.device)


def run_pass(
    problem: Problem, role: Role, between: Tensor, G: int, L: int,
    den: Tensor | None, delta: Tensor | None, launch: Launch | None = None,
) -> None:  # fmt: skip
    """Launch pass_kernel for one role. `between`: the states between the segments."""
    B, T, H, _, V = problem.sizes
    A, D = role.a.shape[-1], role.c.shape[-1]
    form_delta = role.name == "dq" and forms_delta(problem)
    launch = launch or pass_launch(problem, role)
    like = role.out
    raw = pointer(role.raw, like)
    pass_kernel[(triton.cdiv(D, launch.BD) * G * B * H,)](
        role.a, role.b, role.c, raw, role.out, pointer(den, like), pointer(delta, like),
        pointer(role.first, like), pointer(role.first_z, like), between,
        pointer(role.last, like), pointer(role.last_z, like),
        *role.a.stride(), *role.b.stride(), *role.c.stride(), *raw.stride(), *role.out.stride(),
        *role.state_strides(V), *role.state_strides(V), role.first_factor, role.last_factor,
        T, B * H, H, L, G, problem.scale, problem.eps, A=A, D=D,
        ROLE=role.name, NORMALIZE=problem.normalize, WITH_Z=role.with_z,
        MAP_A=role.maps[0], MAP_B=role.maps[1], MAP_C=role.maps[2], SLOPE=role.slope,
        FORM_DELTA=form_delta, FOLD=problem.q.dtype == torch.bfloat16,
        FIRST=role.first is not None, FIRST_Z=role.with_z and role.first_z is not None,
        LAST=role.last is not None, LAST_Z=role.last_z is not None,
        C=launch.C, BA=block(A), BD=launch.BD, **role_precision(problem, role).arguments(),
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )  # fmt: skip


def role_precision(problem: Problem, role: Role) -> Precision:
    """dq of wide normalised heads sums in tf32: nothing takes out what bf16 leaves along q.

    With a map the mean of φ(k), which δ has to take out, is large beside what is left, so that
    the o that δ is formed from has to be better than bf16 too.
    """
    closest = ("dq", "o") if problem.feature_map != "identity" else ("dq",)
    if role.name in closest and keeps_exact(problem):
        return replace(problem.precision(), WIDE="tf32", PRECISION="tf32")
    return problem.precision()


def run_backward(
    problem: Problem, out: Outputs, do: Tensor, dS: Tensor | None, dz: Tensor | None,
    R: Tensor, grads: Gradients, G: int, L: int, launch: Launch,
) -> None:  # fmt: skip
    """Launch backward_kernel: all three gradients."""
    B, T, H, K, V = problem.sizes
    q, k, v, like = problem.q, problem.k, problem.v, grads.dq
    backward_kernel[(G * B * H,)](
        q, k, v, do, grads.dq, grads.dk, grads.dv, out.den,
        out.S_T, out.z_T, out.states, pointer(dS, like), pointer(dz, like), R, grads.dS, grads.dz,
        *q.stride(), *k.stride(), *v.stride(), *do.stride(),
        T, B * H, H, L, G, problem.scale, problem.eps, K=K, V=V,
        NORMALIZE=problem.normalize, MAP=problem.feature_map,
        LAST_S=dS is not None, LAST_Z=dz is not None,
        C=launch.C, BK=block(K), BV=block(V), **problem.precision().arguments(),
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )  # fmt: skip
