"""The formulas of cost.py against torch's FLOP counter and the sizes of real tensors."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import GPT, gpt_config, linear_attention
from lsa.attention import reference
from lsa.attention.api import MODES
from lsa.cost import (
    DESIGNS,
    PEAKS,
    best_chunk_size,
    design_cost,
    least_bytes,
    least_flops,
    mode_cost,
    reference_flops,
    training_cost,
    update_flops,
)
from tests.helpers import counted

# Mode, T, K, V and chunk size of a head.
heads = given(
    st.sampled_from(MODES),
    st.integers(1, 50),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from([1, 4, 16, 64]),
)


@heads
def test_reference_flops_are_what_torch_counts(mode, T, K, V, chunk_size):
    q, k, v = torch.rand(1, 1, T, K), torch.rand(1, 1, T, K), torch.rand(1, 1, T, V)
    options = (chunk_size,) if mode == "chunked" else ()
    S, z = torch.zeros(1, 1, K, V), torch.zeros(1, 1, K)
    call = partial(getattr(reference, f"{mode}_mode"), q, k, v, S, z, 1e-6, *options)
    assert counted(call)[1] == reference_flops(mode, T, K, V, chunk_size=chunk_size)


@heads
def test_the_operator_tells_torch_what_the_definition_spends(mode, T, K, V, C):
    """The last tokens are a chunk of their own, with no padding."""
    B, H, C = 2, 3, C if mode == "chunked" else T
    shapes = (B, T, H, K), (B, T, H, K), (B, T, H, V)
    tokens = [torch.rand(shape, requires_grad=True) for shape in shapes]
    o, forward = counted(lambda: linear_attention(*tokens, mode=mode, chunk_size=C))
    _, backward = counted(lambda: torch.autograd.grad(o.sum(), tokens))
    chunks = [len(part) for part in torch.arange(T).split(C)]
    spent = sum(reference_flops(mode, c, K, V, chunk_size=c) for c in chunks)
    again = 2 * T * K * V + sum(2 * c * c * K for c in chunks if mode != "recurrent")
    assert [forward, backward] == [B * H * spent, B * H * (2 * spent + again)]


def test_costs_grow_as_the_book_says():
    """T^2 d, T d^2, and for a fixed chunk T again."""
    K = V = 64
    double = {
        mode: mode_cost(mode, 65536, K, V).flops / mode_cost(mode, 32768, K, V).flops
        for mode in MODES
    }
    assert double["attention"] == pytest.approx(4, rel=1e-3)
    assert double["recurrent"] == 2
    assert double["chunked"] == 2
    assert mode_cost("attention", 100, K, V).flops == sum(2 * i * (K + V) for i in range(1, 101))
    assert mode_cost("chunked", 100, K, V, chunk_size=100).flops == (
        mode_cost("attention", 100, K, V).flops + mode_cost("recurrent", 100, K, V).flops
    )
    # Tiles of 128 queries: keys and values are read T / 128 times, half of them on average.
    again = 65536**2 / 128 / 2 * (K + V) * 2
    assert mode_cost("attention", 65536, K, V).bytes == pytest.approx(again, rel=0.01)
    assert [mode_cost(mode, 1000, K, V, chunk_size=64).steps for mode in MODES] == [1, 1000, 16]


def test_update_flops_near_six_a_parameter_when_the_context_is_short():
    for attention in ("softmax", "linear"):
        config = gpt_config("124M", vocab_size=256, attention=attention)
        flops = update_flops(config, 64)
        with torch.device("meta"):
            n = GPT(config).n_parameters
        assert flops / (6 * n) == pytest.approx(1, abs=0.05)


def test_roofline():
    cost = mode_cost("recurrent", 1000, 64, 64)
    assert cost.seconds(1e12, 1e30) == cost.flops / 1e12
    assert cost.seconds(1e30, 1e12) == cost.bytes / 1e12
    assert cost.seconds(1e30, 1e30, 1e-6) == pytest.approx(1e-3)
    assert cost.seconds(1e9, 1e30, 1e-9) == cost.flops / 1e9, "waits and arithmetic overlap"


@pytest.mark.parametrize("mode", MODES)
def test_gradients_cost_twice_the_forward_pass(mode):
    T, K = 256, 16
    q, k, v = (torch.rand(1, 1, T, K, requires_grad=True) for _ in range(3))
    S, z = torch.zeros(1, 1, K, K), torch.zeros(1, 1, K)
    options = (64,) if mode == "chunked" else ()
    call = partial(getattr(reference, f"{mode}_mode"), q, k, v, S, z, None, *options)
    (o, _, _), first = counted(call)
    _, second = counted(lambda: torch.autograd.grad(o.sum(), (q, k, v)))
    forward, trained = (f(mode, T, K, K) for f in (mode_cost, training_cost))
    assert trained.flops == 3 * forward.flops
    assert trained.steps == 2 * forward.steps
    # Torch does not count outer products, nor a gradient that nothing needs.
    assert second == pytest.approx(2 * first, rel=0.15)


@pytest.mark.parametrize(("mode", "again"), [("attention", 0), ("recurrent", 0), ("chunked", 4)])
def test_training_reads_and_writes_eleven_numbers_a_feature(mode, again):
    """q, k, v, o; then q, k, v, do, dq, dk, dv. Chunked mode also moves its states, twice."""
    cost = training_cost(mode, 128, 64, 64, chunk_size=128)
    assert cost.bytes == 11 * 128 * 64 * 2 + again * cost.state


def test_peaks_are_their_vendors():
    """Dense bfloat16 in TFLOP/s and memory in GB/s, as on the data sheets."""
    stated = {name: (peak.flops / 1e12, peak.bytes / 1e9) for name, peak in PEAKS.items()}
    assert stated == {
        "A100 80GB SXM": (312, 2039),
        "H100 SXM": (989.5, 3350),
        "H200": (989.5, 4800),
        "RTX 4090": (165.2, 1008),
    }
    # Streaming multiprocessors x FLOP a cycle x clock gives the same peak.
    for name, units in {
        "A100 80GB SXM": 108 * 2048,
        "H200": 132 * 4096,
        "RTX 4090": 128 * 512,
    }.items():
        assert units * PEAKS[name].clock == pytest.approx(PEAKS[name].flops, rel=1e-3)
    assert all(1e-9 < peak.step < 3e-9 for peak in PEAKS.values())


def test_the_best_chunk_is_where_two_bills_are_equal():
    T, d, flops, traffic = 2**20, 64, 100e12, 1e12
    best = best_chunk_size(d, d, flops, traffic)
    assert best == pytest.approx(2 * ((d + 1) * flops / traffic) ** 0.5)

    def bill(size):
        cost = mode_cost("chunked", T, d, d, chunk_size=size)
        return cost.flops / flops + cost.bytes / traffic

    assert min((16 * 2**i for i in range(8)), key=bill) == 128
    assert best == pytest.approx(min(range(64, 512), key=bill), rel=0.02)


def test_no_mode_moves_less_than_its_inputs_and_outputs():
    for mode in ("softmax", *MODES):
        assert mode_cost(mode, 4096, 64, 64).bytes >= least_bytes(4096, 64, 64)
        trained = training_cost(mode, 4096, 64, 64).bytes
        assert trained >= least_bytes(4096, 64, 64, training=True)


WIDTHS = st.sampled_from([16, 64, 128, 256])


@given(st.sampled_from(DESIGNS), st.integers(1, 200_000), st.integers(1, 2000), WIDTHS,
       st.sampled_from([32, 64, 128]), st.booleans())  # fmt: skip
def test_no_design_does_with_less_than_the_least(design, T, heads, D, C, gradients):
    cost = design_cost(design, T, heads, D, chunk_size=C, gradients=gradients)
    assert cost.bytes >= least_bytes(1, D, D, training=gradients)
    assert cost.flops >= least_flops(D, C, gradients) and cost.states >= 0
    assert cost.programs >= heads


@given(st.integers(1, 2000), WIDTHS)
def test_gradients_read_and_write_every_tensor_once(T, D):
    """Counted on tensors: q, k, v in, o out; then q, k, v, do in, dq, dk, dv out."""
    token = torch.empty(T, D, dtype=torch.bfloat16, device="meta").nbytes // T
    assert least_bytes(1, D, D) == (3 + 1) * token
    assert least_bytes(1, D, D, training=True) == (3 + 1) * token + (4 + 3) * token


def test_designs_cost_what_the_kernels_say():
    """The table at the head of lsa/attention/triton/chunked/passes.py, where heads are many."""
    T, heads, C, D = 2**13, 132, 64, 128
    cost = {
        (design, gradients): design_cost(design, T, heads, D, chunk_size=C, gradients=gradients)
        for design in DESIGNS
        for gradients in (False, True)
    }
    assert cost["chunk states", False].bytes == 12 * D + 4 * D * D / C == 2.5 * 8 * D
    assert cost["chunk states", True].bytes == 40 * D + 24 * D * D / C == 4 * 22 * D
    assert cost["three passes", False].bytes == cost["one pass", False].bytes == 8 * D
    assert cost["three passes", True].bytes == 32 * D
    assert cost["one pass", True].bytes == 22 * D
    few = design_cost("three passes", T, 33, D, gradients=True)
    assert few.tokens == 32 * D + 8 * D / 2 and few.programs == 132  # two blocks a head


@pytest.mark.parametrize(
    ("shape", "design", "decay"),
    [
        ((1, 8192, 12, 64), "one pass", False),
        ((1, 65536, 132, 64), "one pass", False),  # cut though its heads fill the GPU
        ((2, 1000, 3, 128), "three passes", False),
        ((2, 1000, 3, 128), "three passes", True),
    ],
)
def test_designs_cost_what_the_launches_move(shape, design, decay):
    pytest.importorskip("triton")
    from experiments.harness.bench.compiling import record_launches
    from experiments.harness.bench.traffic import traffic
    from experiments.kernel_build import Case, call

    B, T, H, D = shape
    config = {"batch": B, "length": T, "heads": H, "dtype": "bfloat16"}
    launches = record_launches(lambda: call(Case("chunked", D, "identity", False, decay), config))
    cost = design_cost(design, T, B * H, D, gradients=True, decay=decay)
    moved = sum(traffic(one.arguments, one.name) for one in launches)
    assert moved == pytest.approx(cost.tokens)
    (forward,) = (one for one in launches if one.name == "forward_kernel")
    assert forward.programs == cost.programs
