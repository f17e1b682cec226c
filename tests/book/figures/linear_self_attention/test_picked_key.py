"""Picking one key of many: the bounds that features set, as they are drawn and said."""

from book.figures.linear_self_attention import picked_key

FEATURES = {"elu + 1": 8, "relu": 8, "softplus": 8, "Taylor, n = 2": 45, "Taylor, n = 4": 495}


def test_each_number_of_features_below_that_of_keys_has_a_bound():
    shares = {length: dict.fromkeys(["softmax", *FEATURES], 0.1) for length in (1.0, 2.0)}
    figure = picked_key.figure_of(shares, FEATURES, keys=64)
    drawn = [one.keys["weights"] for one in figure.curves if one.role == "series"]
    assert drawn == ["softmax", "linear", "relu", "Taylor, n = 2", "Taylor, n = 4"]
    limits = {one.name: one.columns for one in figure.curves if one.role == "ceiling"}
    assert limits == {
        "at most, 8 features": {"length": [1, 2], "share": [12.5, 12.5]},
        "at most, 45 features": {"length": [1, 2], "share": [70.3, 70.3]},
    }
    assert "12.5% for 8 and 70.3% for 45." in figure.caption
