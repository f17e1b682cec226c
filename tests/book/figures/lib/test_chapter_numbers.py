"""Numbers that chapters compute while they are built."""

import re

from book.figures.lib import chapter_numbers


def test_walks_carry_their_standard_error():
    said = chapter_numbers.walks(t=5, draws=200)
    mean, error = map(float, re.fullmatch(r"(\d+) ± (\d+)", said["fair_dumb"]).groups())
    expected = 5 * (2**5 + 1) / 2
    assert said["fair_expected"] == f"{expected:.0f}" and said["fair_draws"] == "200"
    assert 0 < error < mean
    assert abs(mean - expected) < 3 * error
