"""What the stage reads of a page's arrays, in JavaScript, is what was packed."""

import pytest
import torch

from experiments.look_inside import kept_weights, packed_looks
from tests.book.stages.scripts import engine

RUN = """({ arrays, shape, asked, guesses }) => {
    const kinds = { counts: Uint8Array, places: Uint8Array, low: Uint8Array, high: Uint8Array };
    const typed = Object.fromEntries(Object.entries(arrays).map(([name, values]) =>
        [name, (kinds[name] ?? Uint16Array).from(values)]));
    const page = Looks.open(typed, shape);
    return { looks: asked.map((one) => page.look(...one)),
        guesses: guesses.map((one) => page.guess(...one)) };
}"""


@pytest.mark.parametrize(("layers", "heads", "T", "sets", "n"), [(1, 1, 1, 1, 1), (3, 2, 37, 5, 7)])
def test_a_page_gives_what_was_packed(layers, heads, T, sets, n):
    dice = torch.Generator().manual_seed(T)
    scores = 4 * torch.randn(layers, heads, T, T, generator=dice)
    A = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf")).softmax(-1)
    kept = kept_weights(A, 6, 0.01)
    arrays = {name: one.ravel().tolist() for name, one in packed_looks(A, kept).items()}
    numbers = {
        "guesses": torch.randint(50, (sets, n, 3), generator=dice),
        "shares": torch.randint(1001, (sets, n, 3), generator=dice),
        "wanted": torch.randint(1001, (sets, n), generator=dice),
    }
    arrays |= {name: one.flatten().tolist() for name, one in numbers.items()}
    asked = [(layer, head, i) for layer in range(layers) for head in range(heads) for i in range(T)]
    guesses = [(row, i) for row in range(sets) for i in range(n)]
    given = {
        "arrays": arrays,
        "shape": {"heads": heads, "tokens": T, "passage": n},
        "asked": asked,
        "guesses": guesses,
    }
    found = engine("looks")(RUN, given)
    for place, look in zip(asked, found["looks"], strict=True):
        assert [j for j, _ in look] == kept[place].nonzero()[:, 0].tolist()
        assert [weight for _, weight in look] == pytest.approx(
            A[place][kept[place]].tolist(), abs=6e-4
        )
    for (row, i), guess in zip(guesses, found["guesses"], strict=True):
        best = [*zip(numbers["guesses"][row, i], numbers["shares"][row, i] / 1000, strict=True)]
        assert guess["best"] == [[token, pytest.approx(share)] for token, share in best]
        assert guess["wanted"] == pytest.approx(numbers["wanted"][row, i].item() / 1000)
