"""What the workers of the pool do: each function takes the group and runs on every rank of it.

Where the group may be None, it is this process alone, without a word of ranks.
"""

from functools import partial
from pathlib import Path

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import parallelize_module
from torch.utils._python_dispatch import TorchDispatchMode

import lsa
from experiments import rank_speed
from experiments.harness.core import record, runner
from experiments.harness.core.plan import Experiment, Outcome, Run
from experiments.harness.core.tables import table
from lsa import GPT, LinearState
from lsa.parallel import Ranks, attention_by_heads, linear_attention, ring_attention
from lsa.parallel.saving import full_state_dict, save_safetensors
from lsa.parallel.style import SequenceOverRanks
from lsa.parallel.traffic import Traffic


def part(x, lengths, rank):
    """This rank's part of x [B, T, ...], a leaf."""
    return x.split(lengths, 1)[rank].clone().requires_grad_()


def attention(group, way, lengths, inputs, weights, options):
    """o, gradients of q, k, v, g of the part, the state after all, gradients of the first state.

    inputs: q, k, v, g, S, z, whole, the last three or None. weights: of o, S_T and z_T in the loss.
    """
    rank, call = 0, lsa.linear_attention
    if group is not None:
        rank, call = group.rank(), partial(linear_attention, ranks=Ranks(group, way))
    q, k, v = (part(x, lengths, rank) for x in inputs[:3])
    g, S, z = inputs[3:]
    if g is not None:
        g = part(g, lengths, rank) if g.dim() == 3 else g.clone().requires_grad_()
    state = None
    if S is not None:
        S, z = (x.clone().requires_grad_() for x in (S, z))
        state = LinearState(S, z)
    o, after = call(q, k, v, log_decay=g, initial_state=state, return_state=True, **options)
    loss = (o * weights[0].split(lengths, 1)[rank]).sum()
    share = 1.0 if rank == len(lengths) - 1 else 0.0  # the state is everywhere: it counts once
    loss = loss + share * sum((x * w).sum() for x, w in zip(after, weights[1:], strict=True))
    leaves = [x for x in (q, k, v, g, S, z) if x is not None]
    found = iter(torch.autograd.grad(loss, leaves, materialize_grads=True))
    grads = [None if x is None else next(found) for x in (q, k, v, g, S, z)]
    return o.detach(), [x.detach() for x in after], grads


class Order(TorchDispatchMode):
    """Names of the operators within, in their order."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def order(group, layer):
    """What a layer calls, in which order."""
    with torch.no_grad(), Order() as order:
        layer(torch.rand(1, 5, 8), ranks=Ranks(group))
    return order.names


SOFTMAX = {"ring": ring_attention, "heads": attention_by_heads}


def softmax(group, way, lengths, inputs, weights):
    """o of softmax over ranks, and gradients."""
    ranks = Ranks(group)
    leaves = [part(x, lengths, ranks.rank) for x in inputs]
    o = SOFTMAX[way](*leaves, ranks=ranks)
    loss = (o * weights.split(lengths, 1)[ranks.rank]).sum()
    return o.detach(), torch.autograd.grad(loss, leaves)


def traffic(group, call, way, T, sizes, decay):
    """Bytes and calls of a layer's attention, forward and backward."""
    B, H, K, V = sizes
    ranks = Ranks(group, way)
    q, k, v = (torch.rand(B, T, H, n, requires_grad=True) for n in (K, K, V))
    g = {"none": None, "head": torch.full((H,), -0.1), "token": torch.full((B, T, H), -0.1)}[decay]
    with Traffic() as forward:
        if call in SOFTMAX:
            o = SOFTMAX[call](q, k, v, ranks=ranks)
        else:
            o = linear_attention(q, k, v, ranks=ranks, log_decay=g)
    with Traffic() as backward:
        o.sum().backward()
    return [(t.sent, t.received, t.calls) for t in (forward, backward)]


def layer_traffic(group, way, layer, T):
    """Bytes and calls of a layer on a part of T tokens, forward and backward."""
    x = torch.rand(2, T, 8, requires_grad=True)
    with Traffic() as forward:
        y = layer(x, ranks=Ranks(group, way))
    with Traffic() as backward:
        y.sum().backward()
    return [(t.sent, t.received, t.calls) for t in (forward, backward)]


# The modules that a style is given to; by default the whole model.
STYLED = {"style": (), "plan": ("h.*.attn",)}


def model(group, way, config, weights, lengths, tokens, targets, how, ends):
    """Logits of this rank's part, and gradients of all parameters, of a sum over tokens."""
    rank, options = 0, {}
    if group is not None:
        rank, options = group.rank(), {"ranks": Ranks(group, way)}
    gpt = GPT(config).double()
    gpt.load_state_dict(weights)
    if how in STYLED:
        mesh, options, style = DeviceMesh.from_group(group, "cpu"), {}, SequenceOverRanks(way)
        parallelize_module(gpt, mesh, dict.fromkeys(STYLED[how], style) or style)
    if how == "compiled":
        for block in gpt.blocks:
            block.compile(backend="aot_eager", fullgraph=True)
    mine, its = (x.split(lengths, 1)[rank] for x in (tokens, targets))
    logits = gpt(mine, ends, **options)
    torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), its.flatten(), reduction="sum"
    ).backward()
    return logits.detach(), {name: p.grad for name, p in gpt.named_parameters()}


def sharded(group, config, weights, tokens):
    """Logits of a GPT in bfloat16 whose parameters are shared by all ranks, block by block."""
    gpt = GPT(config).bfloat16()
    gpt.load_state_dict(weights)
    mesh = DeviceMesh.from_group(group, "cpu")
    for part in (*gpt.blocks, gpt):
        fully_shard(part, mesh=mesh)
    return gpt(tokens).detach()


def refusal(group, config, tokens, cu_seqlens):
    """What a GPT says of ranks or tokens that it does not take; every rank says it."""
    try:
        GPT(config)(tokens, cu_seqlens, ranks=Ranks(group))
    except ValueError as error:
        return str(error)
    return ""


def gathered(group, config, weights, path):
    """What a sharded model says when asked for its machine, and its weights in one file."""
    gpt = GPT(config)
    gpt.load_state_dict(weights)
    mesh = DeviceMesh.from_group(group, "cpu")
    for module in (*gpt.blocks, gpt):
        fully_shard(module, mesh=mesh)
    said = []
    for module in (gpt, gpt.blocks[0].attn):
        try:
            module.machine()
        except ValueError as error:
            said.append(str(error))
    save_safetensors(gpt, path)
    return said, [*full_state_dict(gpt)]


def planned(group, out):
    """The error of a plan of two runs, the first too large; its notes; records this rank writes."""
    columns = {"t": table(n=("numbers", "one"))}
    one = Experiment(
        "a", "", columns, perform=lambda config, session: Outcome({"t": {"n": [1]}}),
        memory=lambda config, ranks: config["needs"],
    )  # fmt: skip
    runs = [
        Run("a", name, {"needs": n, "seed": 0}, 0) for name, n in (("large", 1e18), ("small", 1))
    ]
    written, write = [], record.write
    record.write = lambda path, *args, **options: written.append(write(path, *args, **options))
    try:
        runner.run_all({"a": one}, runs, torch.device("cpu"), Path(out))
    except runner.FailedError as error:
        return str(error), getattr(error, "__notes__", []), len(written)
    finally:
        record.write = write
    return None


def timed(group, attention, length, config):
    """Seconds of an experiment's call on these ranks."""
    call = rank_speed.call_of(attention, length, config, Ranks(group))
    return rank_speed.together(call, group, 0.0)
