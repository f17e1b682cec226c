"""The block's figure: its bound, and where its lines cross."""

import pytest

from book.figures.lib.records import NotMeasuredError, rows, stored
from book.figures.three_modes import block_speed
from lsa.cost import update_flops
from lsa.gpt import gpt_config


def test_attention_and_weights_cost_the_same_at_twelve_widths():
    """The formula of the chapter, forward and per token, but for half a token of the triangle."""
    for scale in ("nano", "1.5B"):
        shape = gpt_config(scale, n_layer=1, vocab_size=0)
        length = 12 * shape.d_model
        weights = 3 * 2 * 12 * shape.d_model**2
        assert update_flops(shape, length) == pytest.approx(2 * weights, rel=1e-3)


def test_crossings_are_those_of_the_rows():
    for run in stored("block_speed"):
        scale = run["config"]["scale"]
        ahead = block_speed.overtakes(scale, "chunked", "softmax")
        for length in block_speed.lengths(scale, "chunked", "softmax"):
            by_mode = {row["mode"]: row["seconds"] for row in rows(run, length=length)}
            if ahead and length >= ahead:
                assert by_mode["chunked"] < by_mode["softmax"]


def test_what_was_not_measured_is_an_error():
    with pytest.raises(NotMeasuredError, match="no run of {'scale': 'nano'}"):
        block_speed.seconds("nano", "softmax", 3)
