"""Verdicts test a claim's size against the spread between seeds, not its sign."""

import pytest

from book.figures.linear_self_attention import variants
from book.figures.reproduce import claims


@pytest.mark.parametrize(
    ("behind", "verdict"),
    [
        ({256: 0.02, 4096: -0.01}, False),  # both of them another seed would make
        ({256: 0.02, 4096: -0.2}, False),
        ({256: 0.02, 4096: 0.05}, "slightly worse at 4,096; level at 256"),
        ({256: 0.05, 4096: 0.09}, True),
        ({256: 0.05, 4096: 0.3}, "worse, and more than slightly: by up to 15% of softmax's loss"),
        ({256: -0.2, 4096: 0.05}, "slightly worse at 4,096; better at 256"),
        (
            {256: 0.01, 2048: 0.3, 4096: 0.05},
            "worse at 2,048 and 4,096, and more than slightly: by up to 15% of softmax's loss; "
            "level at 256",
        ),
    ],
)
def test_slightly_worse_is_neither_noise_nor_much(behind, verdict):
    losses = dict.fromkeys(behind, 2.0)
    assert claims.slightly_worse(behind, losses, spread=0.03) == verdict


def test_every_claim_has_a_verdict():
    cells = claims.table().cells
    assert len(cells) == len(claims.CLAIMS)
    unmeasured = {line[0] for line in cells if "not measured" in line[-1]}
    assert unmeasured == {claim[0] for claim in claims.CLAIMS if claim[2] is claims._nobody}


def test_the_spread_between_seeds_is_that_of_stored_runs():
    assert 0.01 < variants.seed_spread() < 0.05
