"""The kernels as the compiler makes them for Ampere and Hopper, on a machine that has neither."""

from importlib.metadata import version

import pytest
import torch

pytest.importorskip("triton")

from experiments.compiling import Launched, build, record_launches
from experiments.kernel_speed import LADDER
from lsa.kernels import attention, chunked, recurrent
from lsa.kernels.shared import AMPERE, Problem, planned_for

MOST_SHARED = {80: 163 * 1024, 90: 227 * 1024}
# Registers are handed out by the compiler. The pinned one spills nothing; 3.6 a few numbers.
MOST_SPILLED = 0 if version("triton") == "3.7.1" else 64
USES_PRODUCTS = ("sums_kernel", "pass_kernel", "backward_kernel", "tile_kernel")


def launches(mode, B, T, H, K, *, dtype=torch.bfloat16, normalize=True, feature_map="elu_plus_one"):
    """What one call and its gradient launch, without making them."""
    q, k, v, do = (torch.empty(B, T, H, K, dtype=dtype, device="meta") for _ in range(4))
    problem = Problem(q, k, v, None, None, K**-0.5, 1e-6, normalize, feature_map, normalize)

    def call():
        mode.backward(problem, mode.forward(problem), do, None, None)

    return record_launches(call)


def check(launched: Launched, arch: int, tensor_cores: bool = True):
    built = build(launched, arch)
    where = f"{launched.name} for sm_{arch}: {built}"
    assert built.spilled <= MOST_SPILLED, where
    assert built.shared <= MOST_SHARED[arch], where
    if tensor_cores and launched.kernel.fn.__name__ in USES_PRODUCTS:
        assert (built.wgmma if arch == 90 else built.mma) > 0, where


KINDS = pytest.mark.parametrize(
    ("normalize", "feature_map"), [(False, "identity"), (True, "identity"), (True, "elu_plus_one")]
)


@KINDS
@pytest.mark.parametrize("shape", LADDER, ids=str)
def test_chunked_on_hopper(shape, normalize, feature_map):
    for launched in launches(chunked, *shape, normalize=normalize, feature_map=feature_map):
        check(launched, 90)


@KINDS
@pytest.mark.parametrize("shape", LADDER, ids=str)
def test_chunked_on_ampere(shape, normalize, feature_map):
    with planned_for(AMPERE):
        made = launches(chunked, *shape, normalize=normalize, feature_map=feature_map)
    for launched in made:
        check(launched, 80)


@pytest.mark.parametrize(
    ("dtype", "width"), [(torch.float32, 64), (torch.float16, 64), (torch.float16, 128)], ids=str
)
def test_chunked_in_other_types(dtype, width):
    for launched in launches(chunked, 2, 4096, 16, width, dtype=dtype):
        check(launched, 90, tensor_cores=False)


@pytest.mark.parametrize("width", [64, 128])
def test_attention_and_recurrent(width):
    for mode in (attention, recurrent):
        for launched in launches(mode, 2, 4096, 16, width):
            check(launched, 90)


@pytest.mark.parametrize("mode", [attention, chunked, recurrent], ids=lambda m: m.__name__)
def test_no_grid_axis_but_the_first(mode):
    """Axes y and z end at 65535; a batch of 70000 heads has to go through x."""
    for launched in launches(mode, 1, 1, 70000, 16):
        assert len(launched.grid) == 1
        assert launched.programs < 2**31


def test_segments_fill_the_device_and_cover_the_sequence():
    for heads in (1, 3, 12, 25, 96, 132, 133, 512, 70000):
        for T in (1, 63, 128, 1000, 4096, 65537, 131073):
            G, L = chunked.segments(heads, T, 132)
            assert (G - 1) * L < T <= G * L
            assert heads * G >= min(100, heads * (T // 256 or 1)), (heads, T, G)
