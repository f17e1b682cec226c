"""What a tick and an update of every layer cost, as the book draws it from the stored runs."""

from __future__ import annotations

from book.figures.relatives import layer_speed


def test_a_layer_that_keeps_nothing_is_not_drawn_by_its_state():
    """The axis of states is logarithmic; a model without attention once stopped the chapter."""
    drawn = {curve.keys["layer"] for curve in layer_speed.tick_figure().curves}
    assert {"softmax", "linear"} <= drawn
    assert "none" not in drawn
