"""Every layer timed: ticks after a text that was read, and steps of training, in turns."""

from experiments import layer_speed
from tests.experiments.command import bare_session, performed

LAYERS = ["softmax", "linear", "aft-full", "mamba"]


def places(ticks):
    return [*zip(ticks["position"], ticks["layer"], strict=True)]


def test_ticks_and_updates_of_every_layer(tmp_path):
    smoke = {one["name"]: one["tables"] for one in performed(tmp_path, "layer_speed")}
    assert set(smoke) == {"tick-b1", "tick-b16", "update-16"}
    assert smoke["update-16"]["updates"]["layer"] == LAYERS
    one, many = smoke["tick-b1"]["ticks"], smoke["tick-b16"]["ticks"]
    assert places(one) == [(position, layer) for position in (1, 8) for layer in LAYERS]
    # At position 8 seven tokens were read, and four ticks followed, two of them timed.
    sizes = dict(zip(places(one), one["state"], strict=True))
    assert sizes[8, "softmax"] == sizes[8, "aft-full"] == 2 * 11 * 16 * 4
    assert sizes[1, "linear"] == sizes[8, "linear"] == (16 * 4 + 16) * 4
    assert many["state"][0] == 16 * one["state"][0]


def test_what_would_not_fit_is_left_out(monkeypatch):
    monkeypatch.setattr(layer_speed, "LONGEST_SQUARE", 10)
    config = {"layers": LAYERS, "d_model": 16, "n_head": 4, "seed": 0, "batch": 1}
    session = bare_session()
    found = layer_speed.updates({**config, "length": 16}, session).tables["updates"]
    assert found["layer"] == ["softmax", "linear", "mamba"]
    ticked = layer_speed.ticks({**config, "positions": [1, 9], "ticks": 2}, session)
    at_9 = [layer for position, layer in places(ticked.tables["ticks"]) if position == 9]
    assert at_9 == ["softmax", "linear", "mamba"]
