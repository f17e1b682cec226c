"""The sampler's models, in JavaScript, are those of lsa."""

import pytest
import torch

from book.figures.sampling import writers
from experiments.harness.core.record import ROOT
from experiments.harness.core.weights import WEIGHTS, read_arrays
from experiments.novel_states import resumed
from lsa import GPT, LinearState, gpt_config
from lsa.cost import tick_cost
from tests.book.stages.scripts import engine

# Logits after each letter, and what is kept and multiplied for the last of them.
RUN = """({ weights, kind, slopes, options, text }) => {
    const arrays = Object.fromEntries(
        Object.entries(weights).map(([name, values]) => [name, Float32Array.from(values)]));
    const machine = Writers.machine(arrays, kind, slopes, options), state = machine.start();
    const logits = text.map((letter) => [...machine.read(state, letter)]);
    return { logits, kept: machine.kept(text.length), products: machine.products(text.length) };
}"""

RESTORED = """({ weights, stored, slopes, text }) => {
    const floats = (all) => Object.fromEntries(
        Object.entries(all).map(([name, values]) => [name, Float32Array.from(values)]));
    const machine = Writers.machine(floats(weights), "linear", slopes);
    return stored.map((arrays) => {
        const state = machine.restore(floats(arrays));
        return text.map((letter) => [...machine.read(state, letter)]);
    });
}"""


@pytest.fixture(scope="module")
def script():
    return engine("writers")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("softmax", {}),
        ("linear", {}),
        ("window", {"window": 16, "first": 1}),
        ("window", {"window": 300, "first": 0}),  # longer than the room that it begins with
    ],
)
@pytest.mark.parametrize(
    ("heads", "layers", "slopes", "T"),
    [
        (1, 1, [0.0], 1),
        (2, 1, [-0.171875, 0.0], 17),
        (2, 3, [-0.171875, 0.0], 601),  # longer than the room that a cache begins with, twice
        (3, 2, [-2.0, -0.001, -30.0], 53),
    ],
)
def test_a_machine_gives_the_logits_of_the_model(script, kind, options, heads, layers, slopes, T):
    torch.manual_seed(len(slopes) + T)
    config = gpt_config(
        "nano", vocab_size=11, n_positions=None, n_layer=layers, n_head=heads, d_model=4 * heads,
        attention=kind, attention_options={"log_decay": slopes, **options},
    )  # fmt: skip
    model = GPT(config)
    model.initialise(0.4)  # large enough for every part to show
    for one in model.parameters():
        if one.dim() == 1:
            torch.nn.init.normal_(one, mean=0.5)
    text = torch.randint(11, (1, T))
    weights = {name: one.flatten().tolist() for name, one in model.state_dict().items()}
    given = {"kind": kind, "slopes": slopes, "options": options, "text": text[0].tolist()}
    found = script(RUN, {"weights": weights, **given})
    with torch.no_grad():
        wanted = model.double()(text)[0]
    # States are float32 there, everything else float64.
    logits = torch.tensor(found["logits"], dtype=torch.float64)
    torch.testing.assert_close(logits, wanted, rtol=1e-5, atol=1e-5)
    cost = tick_cost(config, T - 1, itemsize=4)  # after so many letters
    assert 4 * found["kept"] == cost.state
    assert 2 * found["products"] == cost.flops


@pytest.mark.slow
def test_a_machine_goes_on_from_a_stored_state(script):
    """After a thousand letters or a million: what lsa says of the same state and text."""
    model, text = writers.model("linear").double(), b"and so"
    machine, runs = model.machine(), writers.stations()
    weights = {name: one.flatten().tolist() for name, one in model.state_dict().items()}
    arrays = [read_arrays((ROOT / run["path"]).with_suffix(WEIGHTS).read_bytes()) for run in runs]
    stored = [{name: one[name].ravel().tolist() for name in ("S", "z")} for one in arrays]
    slopes = runs[0]["config"]["attention_options"]["log_decay"]
    given = {"weights": weights, "stored": stored, "slopes": slopes, "text": [*text]}
    found = script(RESTORED, given)
    for run, one, logits in zip(runs, arrays, found, strict=True):
        layers = zip(*(torch.from_numpy(one[name]).double() for name in ("S", "z")), strict=True)
        sums = (LinearState(S[None], z[None]) for S, z in layers)
        state = resumed(machine.initial_state, run["config"]["letters"], sums)
        with torch.no_grad():
            _, wanted = machine.prefill(state, torch.tensor([[*text]]))
        found_here = torch.tensor(logits, dtype=torch.float64)
        torch.testing.assert_close(found_here, wanted[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("temperature", [0.3, 1, 1.5])
def test_probabilities_are_a_softmax_however_large_the_logits(script, temperature):
    logits = torch.randn(50, dtype=torch.float64) * 300
    found = script("Writers.probabilities", logits.tolist(), temperature)
    torch.testing.assert_close(
        torch.tensor(found, dtype=torch.float64), (logits / temperature).softmax(0)
    )


def test_without_temperature_the_likeliest_letter_is_certain(script):
    assert script("Writers.probabilities", [1, 3, 3, 2], 0) == [0, 1, 0, 0]


def test_a_letter_is_drawn_as_often_as_it_is_likely(script):
    code = """(shares, n) =>
        Array.from({ length: n }, (_, i) => Writers.drawn(shares, (i + 0.5) / n))"""
    drawn = script(code, [0.25, 0, 0.6, 0.15], 1000)
    assert [drawn.count(letter) for letter in range(4)] == [250, 0, 600, 150]
    # What rounding leaves beyond the last share goes to the likeliest.
    assert [script("Writers.drawn", [0, 0.3, 0.6], at) for at in (0, 0.99)] == [1, 2]
