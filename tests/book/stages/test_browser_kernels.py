"""The kernels that a reader's browser is measured with compute what lsa does."""

import pytest

from book.figures.three_modes.browser_speed import inputs, reference
from tests.book.stages.scripts import engine

CHECK = """(reference) => {
    const { kernels, draws, check } = BrowserKernels;
    return check(kernels(), draws, reference);
}"""
DRAWN = """({ tokens, width, seed }) => {
    const { kernels, draws } = BrowserKernels;
    const { softmax: { q, k, v }, weights } = draws(kernels().padded, tokens, width, seed);
    const size = tokens * width;
    return [q, k, v].map((x) => [...x].slice(0, size)).concat([[...weights]]);
}"""
# A clock that goes on by a millisecond whenever it is read; what a call takes is then its reads.
CLOCK = """({ settings, slow }) => {
    let now = 0;
    globalThis.performance = { now: () => now++ };
    const told = [], taking = (ms) => (inputs, deadline) => {
        now += slow && inputs.T >= slow ? 2000 * ms : ms;
        return !(now > deadline);
    };
    const kernels = {
        padded: (T) => T, tick: () => (now += 1), softmaxToken: () => (now += 3, true),
        softmax: taking(4), attention: taking(3), recurrent: taking(2), chunked: taking(1),
    };
    BrowserKernels.clock(kernels, BrowserKernels.draws, settings, (said) => told.push(said));
    return told;
}"""


@pytest.fixture(scope="module")
def script():
    return engine("browser-kernels")


@pytest.mark.parametrize(
    ("tokens", "width"), [(1, 4), (2, 64), (31, 8), (64, 16), (65, 64), (127, 12), (150, 64)]
)
def test_every_kernel_agrees_with_the_package(script, tokens, width):
    assert script(CHECK, reference(tokens, width, seed=tokens)) < 2e-5


@pytest.mark.parametrize("kind", ["softmax", "linear"])
@pytest.mark.parametrize("token", [0, 63, 64, 149])
def test_the_check_sees_one_wrong_output(script, kind, token):
    wrong = reference()
    wrong[kind][token] += 1e-3
    assert script(CHECK, wrong) > 5e-4


def test_python_draws_the_same_inputs(script):
    shape = {"tokens": 5, "width": 8, "seed": 3}
    for found, wanted in zip(script(DRAWN, shape), inputs(5, 8, 3), strict=True):
        assert found == wanted.flatten().tolist()


def test_the_clock_times_every_call_at_every_length(script):
    settings = {"lengths": [4, 8], "width": 4, "limit": 5}
    told = script(CLOCK, {"settings": settings, "slow": 0})
    assert told[0] == {"length": 4}
    assert told[-1] == {"done": True}
    rows = [row for said in told for row in said.get("rows", [])]
    assert len(rows) == 12
    for row in rows:
        assert 0 < row["low"] <= row["seconds"] <= row["high"]
    softmax, chunked = (
        next(row["seconds"] for row in rows if row["mode"] == mode)
        for mode in ("softmax", "chunked")
    )
    assert softmax > 2 * chunked


def test_what_takes_too_long_is_stopped_and_left_out_of_longer_texts(script):
    settings = {"lengths": [4, 8, 16], "width": 4, "limit": 5}
    told = script(CLOCK, {"settings": settings, "slow": 8})
    seconds = {
        (row["mode"], row["length"]): row["seconds"]
        for said in told
        for row in said.get("rows", [])
        if row["pass"] == "forward"
    }
    for mode, slow in {"softmax": True, "attention": True, "chunked": False}.items():
        assert seconds[mode, 4] is not None
        assert (seconds[mode, 8] is None) == slow
        assert (seconds[mode, 16] is None) == slow
    assert seconds["chunked", 16] == pytest.approx(2, rel=0.01)
