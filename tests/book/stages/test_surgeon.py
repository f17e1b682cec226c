"""Operations on a state, in JavaScript, are those of lsa."""

import pytest
import torch

from book.figures.sampling import surgery
from tests.book.stages.scripts import engine
from tests.experiments.command import nano

RUN = """({ weights, slopes, text, other, ranges, share }) => {
    const arrays = Object.fromEntries(
        Object.entries(weights).map(([name, values]) => [name, Float32Array.from(values)]));
    const machine = Writers.machine(arrays, "linear", slopes);
    const reading = new Surgeon.Reading(machine, text);
    const all = (logits) => [...Writers.probabilities(logits, 1)];
    const state = new Surgeon.Reading(machine, other).whole.state;
    return {
        words: Surgeon.wordsOf(text),
        whole: all(reading.whole.logits),
        cut: ranges.map((range) => {
            const sums = reading.products(...range);
            return { sizes: reading.sizes(sums), shares: all(reading.operated(sums, -1).logits) };
        }),
        added: all(reading.operated(state, share).logits),
        again: all(reading.whole.logits),
    };
}"""


@pytest.fixture(scope="module")
def script():
    return engine("writers", "surgeon")


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("ab", [(0, 1)]),
        ("the old man and the sea, the", [(0, 3), (4, 7), (20, 23), (0, 27)]),
        ("¿Dónde? said Peter's wife", [(2, 8), (14, 21)]),
    ],
)
def test_words_are_subtracted_and_states_added_as_in_lsa(script, layers, text, ranges):
    slopes, other = [-0.171875, 0.0], "quite another text"
    model = nano("linear", {"log_decay": slopes}, n_layer=layers, d_model=16)
    model.initialise(0.4)  # large enough for every part to show
    model.requires_grad_(False)
    weights = {name: one.flatten().tolist() for name, one in model.state_dict().items()}
    given = {"text": [*text.encode()], "other": [*other.encode()], "share": 0.5}
    found = script(RUN, {"weights": weights, "slopes": slopes, "ranges": ranges, **given})
    one = surgery.Reading(model, text.encode())
    assert [tuple(place) for place in found["words"]] == surgery.words(text.encode())

    def close(shares, wanted):
        torch.testing.assert_close(
            torch.tensor(shares, dtype=torch.float64), wanted, rtol=1e-3, atol=1e-5
        )

    none = one.operated(one.S, one.z, 0.0).shares
    close(found["whole"], none)
    close(found["again"], none)  # what was tried has left the reading as it was
    for place, cut in zip(ranges, found["cut"], strict=True):
        S, z = one.products(*place)
        assert cut["sizes"] == pytest.approx(one.sizes(S), rel=1e-3)
        if place[1] - place[0] < one.length:  # of a state that is empty, rounding is left alone
            close(cut["shares"], one.operated(S, z, -1.0).shares)
    S, z = surgery.whole_state(surgery.Reading(model, other.encode()))
    close(found["added"], one.operated(S, z, 0.5).shares)
