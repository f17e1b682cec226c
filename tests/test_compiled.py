"""The compiled body of linear attention is the float64 definition, whatever the instructions."""

import ctypes
import os
import shutil
import struct
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from unittest import mock

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import lsa
from lsa import linear_attention
from lsa.attention import compiled, eager
from lsa.attention.api import LinearState

SETS = ("avx2", "avx512", "neon")


def bodies():
    found = {"torch": compiled.open_body("torch")}
    for name in SETS:
        try:
            found[name] = compiled.open_body(name)
        except ValueError:
            continue
    return found


BODIES = bodies()


@pytest.fixture(params=BODIES, scope="module")
def body(request):
    """linear_attention runs on this instruction set, or in plain torch."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compiled, "BODY", BODIES[request.param])
        patched.setattr(compiled, "AVAILABLE", request.param != "torch")
        yield request.param


@st.composite
def calls(draw):
    """Options of a call and a seed for its numbers."""
    return {
        "seed": draw(st.integers(0, 2**16)),
        "sizes": tuple(draw(st.sampled_from(s)) for s in ([1, 2], [0, 1, 5, 63, 64, 131], [1, 3])),
        "widths": draw(
            st.sampled_from([(1, 1), (8, 16), (16, 5), (33, 24), (64, 64), (20, 100), (256, 256)])
        ),
        "mode": draw(st.sampled_from(["attention", "recurrent", "chunked"])),
        "chunk_size": draw(st.sampled_from([None, 1, 7, 100])),
        "normalize": draw(st.booleans()),
        "feature_map": draw(st.sampled_from(["identity", "elu_plus_one", "relu", "softplus"])),
        "decay": draw(st.sampled_from(["none", "head", "token", "reset"])),
        "state": draw(st.booleans()),
        "strided": draw(st.booleans()),
        "dtype": draw(st.sampled_from([torch.float32, torch.float32, torch.bfloat16])),
        "threads": draw(st.sampled_from([1, 2, 3])),
        "cached": draw(st.sampled_from([1, 500, eager.CACHED])),  # pieces of plain torch
    }


def inputs(call):
    """q, k, v, S, z, g of a call, and the gradients that come back, in its dtype."""
    generator = torch.Generator().manual_seed(call["seed"])

    def drawn(*shape):
        return torch.rand(shape, generator=generator) + 0.1

    (B, T, H), (K, V) = call["sizes"], call["widths"]
    q, k, v = drawn(B, T, H, K), drawn(B, T, H, K), drawn(B, T, H, V) - 0.6
    if call["strided"]:
        q, k, v = torch.cat((q, k, v), -1).split((K, K, V), -1)
    q, k, v, do = (x.to(call["dtype"]) for x in (q, k, v, drawn(B, T, H, V) - 0.6))
    S, z = drawn(B, H, K, V) - 0.6, drawn(B, H, K)
    g = {"none": None, "head": -drawn(H)}.get(call["decay"], -drawn(B, T, H))
    if call["decay"] == "reset":
        g = torch.where(drawn(B, T, H) < 0.3, torch.finfo(torch.float32).min, g)
    returned = drawn(B, H, K, V) - 0.6, drawn(B, H, K) - 0.6
    return (q, k, v, S, z, g), (do, *returned)


def results(call, tensors, given, dtype=None):
    """o, S, z and the gradients of a call."""
    leaves = [x if x is None else (x.to(dtype) if dtype else x).detach() for x in tensors]
    leaves = [x if x is None else x.requires_grad_() for x in leaves]
    q, k, v, S, z, g = leaves
    cached = eager.CACHED if dtype else call.get("cached", eager.CACHED)
    needed = [x for x in ((q, k, v, S, z, g) if call["state"] else (q, k, v, g)) if x is not None]
    with mock.patch.object(eager, "CACHED", cached):
        o, state = linear_attention(
            q, k, v, mode="chunked" if dtype else call["mode"], chunk_size=call["chunk_size"],
            normalize=call["normalize"], feature_map=call["feature_map"], log_decay=g, eps=1e-2,
            initial_state=LinearState(S, z) if call["state"] else None, return_state=True,
        )  # fmt: skip
        outputs = [o, *state]
        total = sum((y * x.to(y)).sum() for x, y in zip(given, outputs, strict=True))
        grads = torch.autograd.grad(total, needed, allow_unused=True, materialize_grads=True)
    return [*outputs, *grads]


# Gradients of a head's decay, in which many tokens cancel: differences of two sums lost 1e-4 here.
CANCELLING = {
    "seed": 65536, "sizes": (1, 64, 3), "widths": (20, 100), "mode": "attention",
    "chunk_size": None, "normalize": True, "feature_map": "elu_plus_one", "decay": "head",
    "state": False, "strided": False, "dtype": torch.float32, "threads": 1,
}  # fmt: skip
UNNORMALIZED = {**CANCELLING, "seed": 59859, "sizes": (2, 131, 1), "normalize": False}


@pytest.mark.slow
@given(calls())
@example(CANCELLING)
@example({**UNNORMALIZED, "feature_map": "softplus"})
def test_it_computes_the_definition_and_its_gradients(body, call):
    tensors, given = inputs(call)
    threads = torch.get_num_threads()
    torch.set_num_threads(call["threads"])
    try:
        found = results(call, tensors, given)
    finally:
        torch.set_num_threads(threads)
    expected = results(call, tensors, given, torch.float64)
    rounded = 1e-5 if call["dtype"] == torch.float32 else 1e-2
    for one, wanted in zip(found, expected, strict=True):
        assert one.isfinite().all()
        scale = wanted.abs().max().item() if wanted.numel() else 0.0
        torch.testing.assert_close(
            one.double(), wanted, rtol=rounded, atol=rounded * (1 + scale), check_dtype=False
        )


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "T"), [("chunked", 2**16), ("attention", 2**12)])
def test_a_long_text_of_like_keys_is_rounded_once_for_each_chunk(body, mode, T):
    """Token by token, each would lose to a sum that is ten thousand times as large."""
    g = torch.Generator().manual_seed(0)
    q, v = (torch.randn(1, T, 1, 16, generator=g) for _ in range(2))
    k = torch.randn(1, 1, 1, 16, generator=g).expand_as(q)
    (_, z), (_, wanted) = (
        linear_attention(
            *(x.to(dtype) for x in (q, k, v)), mode=mode, feature_map="elu_plus_one",
            return_state=True,
        )[1]
        for dtype in (torch.float32, torch.float64)
    )  # fmt: skip
    assert ((z - wanted) / wanted).abs().max() <= T / 32 * 2**-25


@pytest.mark.slow
@pytest.mark.parametrize("decay", ["none", "token"])
@pytest.mark.parametrize("heads", [1, 2])
def test_threads_change_no_bit(body, heads, decay):
    """A head is cut into parts for 2 to 8 threads; each part sums what comes before it."""
    if body == "torch":
        pytest.skip("its threads are torch's")
    tensors, given = inputs({**CANCELLING, "sizes": (1, 1030, heads), "decay": decay})
    call = {**CANCELLING, "mode": "chunked", "state": True}
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3, 8):
            torch.set_num_threads(count)
            found.append(results(call, tensors, given))
    finally:
        torch.set_num_threads(threads)
    for others in found[1:]:
        assert all(map(torch.equal, found[0], others))


@given(calls())
def test_bfloat16_is_read_exactly_and_results_are_rounded_once(body, call):
    if body == "torch":
        pytest.skip("plain torch rounds in other places")
    tensors, given = inputs({**call, "dtype": torch.bfloat16})
    exact = results(call, [x if x is None else x.float() for x in tensors], given)
    for one, other in zip(results(call, tensors, given), exact, strict=True):
        assert torch.equal(one, other.to(one.dtype))


@pytest.mark.parametrize("needs", [False, True])
def test_a_negated_view_is_read_with_its_sign(body, needs):
    call = {"seed": 0, "sizes": (1, 9, 2), "widths": (8, 5), "dtype": torch.float32}
    (q, k, v, S, z, g), _ = inputs({**call, "decay": "token", "strided": False})
    k.requires_grad_(needs)
    views = [torch._neg_view(-x) for x in (q, v, S, z, g)]
    outputs = [
        linear_attention(q, k, v, log_decay=g, initial_state=LinearState(S, z))
        for q, v, S, z, g in (views, (q, v, S, z, g))
    ]
    assert views[0].is_neg() and torch.equal(*outputs)


@pytest.mark.slow
def test_it_follows_torchs_rules_for_operators(body):
    if body == "torch":
        pytest.skip("its operator is tested with all else that it does")
    call = {"seed": 0, "sizes": (2, 9, 2), "widths": (8, 5), "dtype": torch.float32}
    (q, k, v, S, z, g), _ = inputs({**call, "decay": "token", "strided": True})
    tensors = [x.requires_grad_() for x in (q, k, v, S, z, g)]
    options = ("chunked", 0, True, 0.5, 1e-6, "elu_plus_one", True, False)
    torch.library.opcheck(torch.ops.lsa.linear_attention, (*tensors, *options))


def test_a_lack_of_memory_or_threads_is_said(body):
    if body == "torch":
        pytest.skip("torch says so itself")
    each = ctypes.CFUNCTYPE(ctypes.c_int32, *3 * [ctypes.c_int64], *2 * [ctypes.c_void_p])
    failing = each(lambda *_: 1)

    def run(T, threads, count):
        sizes = 1, T, 2, 64, 64, max(T, 1)
        options = compiled.BODY.body, threads, count, *sizes, 0, 0, 1.0, 0.0
        packed = struct.pack(f"{compiled.CALL}20q", *options, *35 * [0])
        return compiled.BODY.run(packed, len(packed))

    assert run(0, 0, 2) == 0
    assert run(2**42, 0, 1) == 1, "a chunk of so many tokens fits no memory"
    threads = ctypes.cast(failing, ctypes.c_void_p).value
    assert run(0, threads, 2) == 1, "its threads did not run"


@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64, "meta"], ids=str)
def test_it_may_be_imported_under_any_of_torchs_defaults(default):
    """As by a program that makes its model in 16 bits, or on meta, before it needs lsa."""
    before = torch.get_default_dtype()
    spec = spec_from_file_location(
        "lsa.attention.again", compiled.__file__, submodule_search_locations=[]
    )
    again = module_from_spec(spec)
    try:
        if default == "meta":
            torch.set_default_device(default)
        else:
            torch.set_default_dtype(default)
        spec.loader.exec_module(again)
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(before)
    made = again.NOTHING.new_empty(3)
    assert (made.dtype, made.device) == (torch.float32, torch.device("cpu"))


@pytest.mark.skipif("CI" not in os.environ, reason="a computer may have no compiler")
def test_one_was_built():
    assert len(BODIES) > 1


def test_plain_torch_runs_where_none_can_be_loaded_and_says_why(tmp_path, monkeypatch):
    folder = Path(compiled.__file__).parent
    here = tmp_path / "compiled"
    here.mkdir()
    for name in ("body.cpp", "kernel.inl"):
        shutil.copy(folder / name, here)
    monkeypatch.setattr(compiled, "__file__", str(here / "__init__.py"))

    def says(reason):
        monkeypatch.setattr(compiled, "BODY", compiled.open_body(None))
        assert lsa.backends()["cpu"].startswith(f"plain torch: {reason}")
        with pytest.raises(ValueError, match=f"LSA_CPU: .* got 'compiled': {reason}"):
            compiled.open_body("compiled")

    says("no compiled body was built")
    built = here / f"body{EXTENSION_SUFFIXES[0]}"
    built.write_bytes(b"of a build that was cut off")
    says(f"{built.name} cannot be loaded")
    if len(BODIES) > 1:
        built.unlink()
        shutil.copy(folder / built.name, here)
        assert isinstance(compiled.open_body(None), compiled.Library)
        with (here / "kernel.inl").open("a") as file:
            file.write("\n")
        says(f"{built.name} was built from other sources")


def test_what_is_not_there_is_refused_in_one_line():
    with pytest.raises(ValueError, match="LSA_CPU: expected torch, compiled, or of avx2"):
        compiled.open_body("sse")
    assert compiled.open_body("torch") == "LSA_CPU=torch asks for it"


@given(calls())
def test_nothing_is_left_of_the_call_before(body, call):
    tensors, given = inputs({**call, "dtype": torch.float32})
    first = results(call, tensors, given)
    results(call, [x if x is None else x * torch.nan for x in tensors[:5]] + [None], given)
    for one, again in zip(first, results(call, tensors, given), strict=True):
        assert torch.equal(one, again)
