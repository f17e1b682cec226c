"""The kernels as the compiler makes them for Ampere and Hopper, on a machine that has neither."""

import pytest
import torch

pytest.importorskip("triton")

from torch.fx.experimental.proxy_tensor import make_fx

from experiments.harness.bench.compiling import Launched, build, kernel_digests, record_launches
from experiments.harness.core import record
from lsa import linear_attention
from lsa.attention import dispatch
from lsa.attention.call import Call
from lsa.attention.triton import attention, recurrent
from lsa.attention.triton.chunked import passes as chunked
from lsa.attention.triton.tuning.gpu import AMPERE, HOPPER, planned_for
from lsa.attention.triton.tuning.plan import plan_of
from lsa.attention.triton.tuning.segments import Pass, segments
from tests.kernels.cases import empty_call

MOST_SHARED = {80: 163 * 1024, 90: 227 * 1024}
PRODUCTS = ("sums", "forward", "dq", "dkv", "one_pass", "tile")
SERIALISED = "C7515"


def launches(mode, *sizes, dtype=torch.bfloat16, **options):
    """What one call and its gradient launch, without making them. options: of `empty_call`."""
    problem, given = empty_call(*sizes, dtype, device="meta", **options)
    return record_launches(lambda: mode.backward(problem, mode.forward(problem), *given))


def check(launched: Launched, arch: int):
    built = build(launched, arch)
    where = f"{launched.name} for sm_{arch}: {built}"
    assert built.spilled == 0, where
    assert built.shared <= MOST_SHARED[arch], where
    assert SERIALISED not in built.warnings, where
    if launched.kernel.fn.__name__.removesuffix("_kernel") in PRODUCTS:
        assert built.wgmma + built.mma > 0, where


def test_stored_kernels_are_these_and_neither_spill_nor_wait():
    """kernel_build compiles every mode, width and kind of map; here, what states change is added.

    Where this fails for a digest: python -m experiments run kernel_build --force with each version
    of Triton that is stored, and commit it.
    """
    stored = list(record.load("kernel_build"))
    compiled = {(run["config"]["triton"], run["config"]["arch"]) for run in stored}
    versions = {version for version, _ in compiled}
    assert {"3.6.0", "3.7.1"} <= versions
    assert compiled == {(version, arch) for version in versions for arch in (80, 90)}
    for run in stored:
        assert run["config"]["triton"] == run["provenance"]["versions"]["triton"]
        sources = run["tables"]["sources"]
        assert dict(zip(sources["file"], sources["digest"], strict=True)) == kernel_digests()
        rows = run["tables"]["rows"]
        assert set(rows["spilled"]) == {0}
        assert not any(SERIALISED in warnings for warnings in rows["warnings"])
        assert max(rows["shared"]) <= MOST_SHARED[run["config"]["arch"]]
        for kernel, *products in zip(rows["kernel"], rows["wgmma"], rows["mma"], strict=True):
            assert any(products) or kernel.partition(":")[0] not in PRODUCTS, kernel


def test_chunked_with_a_map_and_states_at_both_ends():
    with planned_for(HOPPER):
        made = launches(chunked, 2, 4096, 16, 64, states=True)
    for launched in made:
        check(launched, 90)


@pytest.mark.parametrize("mode", [attention, recurrent, chunked], ids=lambda m: m.__name__)
def test_decay_with_states_at_both_ends(mode):
    made = launches(mode, 2, 4096, 16, 64, states=True, decay=True)
    assert "decay_gradient_kernel" in {launched.name for launched in made}
    for launched in made:
        check(launched, 90)


@pytest.mark.parametrize("mapped", [False, True])
def test_the_sum_alone_of_narrow_heads(mapped):
    """All gradients in one pass; with a map dk and dv share one."""
    feature_map = "elu_plus_one" if mapped else "identity"
    made = launches(chunked, 4, 4096, 64, 64, normalize=False, feature_map=feature_map)
    wanted = [
        "forward_kernel",
        *(["dq_kernel", "dkv_kernel:dk dv"] if mapped else ["one_pass_kernel"]),
    ]
    assert [launched.name for launched in made] == wanted


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_the_widest_heads_fit_with_a_map_and_states_at_both_ends(dtype):
    """The less memory a multiprocessor has the sooner it is full; in bf16 Hopper's tiles are."""
    options = {"dtype": dtype, "feature_map": "softplus", "states": True}
    with planned_for(AMPERE):
        made = launches(chunked, 8, 1024, 32, 256, **options)
    for launched in made:
        assert build(launched, 80).shared <= MOST_SHARED[80], launched.name


@pytest.mark.parametrize("mode", [attention, chunked, recurrent], ids=lambda m: m.__name__)
def test_no_grid_axis_but_the_first(mode):
    """Axes y and z end at 65535; a batch of 70000 heads has to go through x."""
    for launched in launches(mode, 1, 1, 70000, 16):
        assert len(launched.grid) == 1
        assert launched.programs < 2**31


def test_what_is_recovered_walking_back_is_never_far():
    def cut(heads, T, dtype=torch.bfloat16):
        q = torch.empty(1, T, heads, 64, dtype=dtype, device="meta")
        plan = plan_of(Call(q, q, q, normalize=False))
        return plan.G, plan.L

    assert cut(132, 131072) == (16, 8192)
    assert cut(132, 131072, torch.float32) == (1, 131072)
    assert cut(132, 8192) == (1, 8192)


def test_a_compiler_can_follow_lengths_that_change(monkeypatch):
    """How many states are kept for the gradient is no formula of the length."""
    monkeypatch.setattr(dispatch, "uses_kernels", lambda q, v, scale: True)

    def step(q, k, v):
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(linear_attention(*leaves).sum(), leaves)

    traced = make_fx(step, tracing_mode="symbolic")(*torch.rand(3, 1, 4096, 3, 64))
    assert any("linear_attention_backward" in str(node.target) for node in traced.graph.nodes)


def test_segments_fill_the_device_and_cover_the_sequence():
    """What the account chooses among is in test_segments.py."""
    for heads in (1, 3, 12, 25, 96, 132, 133, 512, 70000):
        for T in (1, 63, 128, 1000, 4096, 65537, 131073):
            G, L = segments((Pass(heads),), 64, T, 132)
            assert (G - 1) * L < T <= G * L
            # Waves of two programs a multiprocessor, one of which keeps memory busy: no longer
            # than half as long again as memory takes.
            if heads * T >= 2 * 132 * 256:
                waves = -(-heads * G // (2 * 132))
                assert waves * 132 <= 1.5 * heads * G, (heads, T, G)
