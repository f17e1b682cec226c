"""Random problems for the kernels, and how far their results are from the definition."""

import torch

from lsa.attention.call import Call
from lsa.attention.feature_maps import FEATURE_MAPS
from tests.helpers import RELATIVE, definition, relative_rms


def draw(B, T, H, K, V, dtype, *, device="cpu", feature_map="identity", contiguous=True, seed=0):
    """q, k, v and the gradient of o. Without a feature map q and k are positive already."""
    g = torch.Generator(device).manual_seed(seed)

    def new(width):
        shape = (B, T, H, width) if contiguous else (B, H, T, 2 * width)
        x = torch.randn(shape, generator=g, device=device)
        return x if contiguous else x.transpose(1, 2)[..., ::2]

    q, k, v, do = new(K), new(K), new(V), new(V)
    if feature_map == "identity":
        q, k = FEATURE_MAPS["elu_plus_one"](q), FEATURE_MAPS["elu_plus_one"](k)
    return [x.to(dtype) for x in (q, k, v, do)]


def empty_call(
    B, T, H, K, dtype, *, device, normalize=True, feature_map="elu_plus_one", states=False,
    decay=False,
):  # fmt: skip
    """A call without numbers, and the gradients that come back. states: given at both ends."""
    q, k, v, do = (torch.empty(B, T, H, K, dtype=dtype, device=device) for _ in range(4))
    S, dS, z, dz = (
        torch.empty(B, H, K, *more, device=device) if states else None
        for more in ((K,), (K,), (), ())
    )
    g = torch.empty(B, T, H, device=device) if decay else None
    call = Call(
        q, k, v, S, z, g, scale=K**-0.5, normalize=normalize, feature_map=feature_map,
        with_z=states, with_dg=decay,
    )  # fmt: skip
    return call, (do, dS, dz)


def errors(
    mode, inputs, *, normalize, feature_map, first, last, scale=None, eps=1e-6, decay=None,
    **options,
):  # fmt: skip
    """The relative RMS error of every result of one call of a mode's module.

    first, last: whether there is an initial state, and a gradient of the returned one.
    decay: log_decay, [B, T, H] or [1, 1, H], or None.
    """
    q, k, v, do = inputs
    B, T, H, K = q.shape
    V = v.shape[-1]
    g = torch.Generator(q.device).manual_seed(7)

    def state(make):
        return make((B, H, K, V), generator=g, device=q.device), make(
            (B, H, K), generator=g, device=q.device
        )

    S, z = state(torch.rand) if first else (None, None)
    dS, dz = state(torch.randn) if last else (None, None)
    scale = K**-0.5 if scale is None else scale
    problem = Call(
        q, k, v, S, z, decay, scale=scale, eps=eps, normalize=normalize, feature_map=feature_map,
        with_z=last, with_dg=decay is not None,
    )  # fmt: skip
    out = mode.forward(problem, **options)
    grads = mode.backward(problem, out, do, dS, dz, **options)

    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    zeros = torch.zeros(B, H, K, V, dtype=torch.float64, device=q.device)
    leaves += [
        (zero if x is None else x.double()).clone().requires_grad_()
        for x, zero in ((S, zeros), (z, zeros[..., 0]))
    ]
    wide = None if decay is None else decay.double().requires_grad_()
    wanted = definition(
        *leaves,
        scale=scale,
        eps=eps,
        normalize=normalize,
        feature_map=feature_map,
        g=None if wide is None else wide.expand(B, T, H),
    )
    weights = [do.double()] + ([dS.double(), dz.double()] if last else [])
    loss = sum((w * x).sum() for w, x in zip(weights, wanted, strict=False))
    leaves += [] if wide is None else [wide]
    gradients = torch.autograd.grad(loss, leaves, materialize_grads=True)
    found = {"o": out.o, "S": out.S_T, "dq": grads.dq, "dk": grads.dk, "dv": grads.dv}
    exact = {"o": wanted[0], "S": wanted[1]}
    exact |= dict(zip(("dq", "dk", "dv", "dS", "dz", "dg"), gradients, strict=False))
    if decay is not None:
        found["dg"] = grads.dg
    if normalize or last:
        found["z"], exact["z"] = out.z_T, wanted[2]
    if first:
        found |= {"dS": grads.dS} | ({"dz": grads.dz} if normalize or last else {})
    return {name: relative_rms(x, exact[name]) for name, x in found.items()}


def check(mode, inputs, **options):
    """Each error of a call of a mode's module is within the bound of its dtype."""
    within(errors(mode, inputs, **options), inputs[0].dtype)


def within(found, dtype):
    assert {name: error for name, error in found.items() if not error <= RELATIVE[dtype]} == {}
