"""One causal sum in four roles: o and its three gradients in attention and recurrent mode.

Linear attention and its three gradients are the same causal sum,

    out_x = f_x [ sum_{y<=x} w_y (a_x·b_y + α_x + β_y) c_y  +  a_x M_0 + ... ]

read forwards in time, or backwards with y >= x:

    role  a    b    c    direction   w_y  α_x  β_y   f_x          state M
    o     q    k    v    forwards    1    0    0     scale / n_x  S   [K, V], z
    dq    do   v    k    forwards    1    δ_x  0     scale / n_x  S^T [V, K], z
    dk    v    do   q    backwards   r_y  0    δ_y   scale        R^T [V, K], m
    dv    k    q    do   backwards   r_y  0    0     scale        R   [K, V]

with n the normaliser plus eps, r = 1 / n and δ_x = -do_x·o_x. Unnormalised, n = r = 1 and δ = 0.
R = sum_y r_y q_y do_y^T and m = sum_y r_y δ_y q_y run backwards in time. They start from the
gradients of the returned state, divided by scale. So a mode needs one kernel, and the gradient of
the initial state is R and m after the first token.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..call import Call, Grads, Saved


@dataclass(frozen=True)
class Role:
    """One of the four sums, ready to be launched; the module's docstring has the formulas.

    raw: q in role dq, k in role dk: where the slope of the feature map is taken, if any.
    first, first_z: the state before the first token in the role's direction, or None.
    last, last_z: where the state after the last token is written, or None.
    first_factor, last_factor: multiply them (R is kept divided by scale).
    with_z: whether the role reads or returns z (or m).
    """

    name: str
    a: Tensor
    b: Tensor
    c: Tensor
    out: Tensor
    maps: tuple[str, str, str]
    slope: str = "identity"
    raw: Tensor | None = None
    first: Tensor | None = None
    first_z: Tensor | None = None
    last: Tensor | None = None
    last_z: Tensor | None = None
    first_factor: float = 1.0
    last_factor: float = 1.0
    with_z: bool = False

    def state_strides(self, V: int) -> tuple[int, int]:
        """Strides of the state's two axes. It is stored [K, V]; dq and dk use its transpose."""
        return (1, V) if self.name in ("dq", "dk") else (V, 1)


def forward_role(call: Call, out: Saved) -> Role:
    """The role of o."""
    f = call.feature_map
    return Role(
        "o", call.q, call.k, call.v, out.o, (f, f, "identity"),
        first=call.S, first_z=call.z,
        last=out.S_T, last_z=out.z_T if call.keeps_z else None, with_z=call.keeps_z,
    )  # fmt: skip


def dq_role(call: Call, do: Tensor, grads: Grads) -> Role:
    """The role of dq: the sum of (do, v, k)."""
    f = call.feature_map
    return Role(
        "dq", do, call.v, call.k, grads.dq, ("identity", "identity", f), slope=f,
        raw=call.q, first=call.S, first_z=call.z, with_z=call.normalize,
    )  # fmt: skip


def dk_role(call: Call, do: Tensor, grads: Grads, dS: Tensor | None, dz: Tensor | None) -> Role:
    """The role of dk: the reversed sum of (v, do, q). It leaves dz."""
    f = call.feature_map
    return Role(
        "dk", call.v, do, call.q, grads.dk, ("identity", "identity", f), slope=f,
        raw=call.k, first=dS, first_z=dz, last_z=grads.dz,
        first_factor=1.0 / call.scale, last_factor=call.scale,
        with_z=call.keeps_z,
    )  # fmt: skip


def dv_role(call: Call, do: Tensor, grads: Grads, dS: Tensor | None) -> Role:
    """The role of dv: the reversed sum of (k, q, do). It leaves dS."""
    f = call.feature_map
    return Role(
        "dv", call.k, call.q, do, grads.dv, (f, f, "identity"), first=dS, last=grads.dS,
        first_factor=1.0 / call.scale, last_factor=call.scale,
    )  # fmt: skip
