"""What a layer refuses is named in one line."""

import inspect
import math
import re

import pytest

from lsa import DeepRNN, KGram, LinearAttention, SoftmaxAttention, TaylorAttention
from lsa.layers import LAYERS, make_layer
from lsa.layers.aft import AFTFull, AFTLocal
from lsa.layers.bidirectional_linear import BidirectionalLinearAttention
from lsa.layers.convolution import CausalConv
from lsa.layers.delta import DeltaNet
from lsa.layers.gated import GatedLinearAttention
from lsa.layers.mamba import S6, Mamba
from lsa.layers.power import PowerAttention
from lsa.layers.rwkv import RWKVChannelMixing
from lsa.layers.s4 import S4
from lsa.layers.s4d import S4D
from lsa.layers.window_state import WindowStateAttention

D = 12
ABOVE = "a finite number above 0, got "
FADES = "finite numbers, at most 0"
# A layer, its options, of which the first is at fault, and what is expected.
BAD = [
    (SoftmaxAttention, {"n_heads": 5}, "a divisor of d_model 12, got 5"),
    (SoftmaxAttention, {"log_decay": [1.0, 0]}, FADES),
    (SoftmaxAttention, {"log_decay": -0.5}, ".*got -0.5"),
    (LinearAttention, {"chunk_size": 2**63}, "at most "),
    (LinearAttention, {"feature_map": "sigmoid"}, "one of elu_plus_one.*, got 'sigmoid'"),
    (LinearAttention, {"normalize": True, "output_norm": True}, "False with output_norm, got True"),
    (LinearAttention, {"log_decay": [-(10**400), 0]}, FADES),
    (LinearAttention, {"log_decay": [-1e300, 0]}, FADES),
    (LinearAttention, {"log_decay": "ab"}, "a number, got 'a'"),
    (LinearAttention, {"log_decay": [None, None]}, "a number, got None"),
    (LinearAttention, {"log_decay": [-1.0]}, "one number for each of 2 heads, got 1"),
    (BidirectionalLinearAttention, {"feature_map": "sigmoid"}, "one of elu_plus_one"),
    (TaylorAttention, {"scale": 0.0}, f"{ABOVE}0.0"),
    (TaylorAttention, {"scale": 10**400}, f"{ABOVE}1000"),
    (TaylorAttention, {"log_decay": [0.5, 0.0]}, f"{FADES}, got 0.5"),
    (KGram, {"k": 0, "hidden": 4}, "at least 1, got 0"),
    (KGram, {"hidden": 0, "k": 2}, "at least 1, got 0"),
    (AFTFull, {"max_length": 0}, "at least 1, got 0"),
    (AFTFull, {"chunk_size": 0, "max_length": 4}, "at least 1, got 0"),
    (AFTLocal, {"window": 0}, "at least 1, got 0"),
    (RWKVChannelMixing, {"hidden": 0}, "at least 1, got 0"),
    (S4, {"d_state": 5}, "an even number from 2, got 5"),
    (S4, {"dt_min": -1.0}, ".*got -1.0"),
    (S4D, {"dt_min": 1.0, "dt_max": 0.1}, ".*got 1.0"),
    (S4D, {"dt_max": 10**400}, ".*got 1000"),
    (S4D, {"mode": "scan"}, "one of fft, direct, recurrent, got 'scan'"),
    (S4D, {"discretisation": "euler"}, "one of zoh, bilinear, got 'euler'"),
    (S6, {"d_state": 0}, "at least 1, got 0"),
    (S6, {"dt_min": 0}, ".*got 0"),
    (S6, {"mode": "fft"}, "one of auto, kernel, steps, tree, got 'fft'"),
    (Mamba, {"dt_min": 1.0, "dt_max": 0.1}, ".*got 1.0"),
    (Mamba, {"input_rule": "foh"}, "one of euler, zoh, got 'foh'"),
    (Mamba, {"expand": 0}, "at least 1, got 0"),
    (Mamba, {"d_conv": 0}, "at least 1, got 0"),
    (CausalConv, {"width": 0}, "at least 1, got 0"),
    (GatedLinearAttention, {"decay": "row"}, "one of fixed, head, channel, got 'row'"),
    (
        GatedLinearAttention,
        {"feature_map": "identity", "normalize": True},
        "one that is not negative with normalize, got 'identity'",
    ),
    (DeltaNet, {"n_heads": 7}, "a divisor of d_model 12, got 7"),
    (DeltaNet, {"chunk_size": 0}, "at least 1, got 0"),
    (PowerAttention, {"degree": 3}, "an even number from 2, got 3"),
    (PowerAttention, {"log_decay": [-0.5]}, "one number for each of 2 heads, got 1"),
    (WindowStateAttention, {"feature_map": "relu"}, "one of elu_plus_one, .*, got 'relu'"),
    (WindowStateAttention, {"degree": 3}, "an even number from 2, got 3"),
    (WindowStateAttention, {"features": 7}, "an even number, of hedgehog alone, got 7"),
    (WindowStateAttention, {"features": 8, "feature_map": "power"}, "an even .* alone, got 8"),
    (WindowStateAttention, {"log_decay": [-1.0]}, "one number for each of 2 heads, got 1"),
]


OTHERS = (BidirectionalLinearAttention, DeepRNN, RWKVChannelMixing)
# Options that a layer needs, and values that no option of a type takes.
GIVEN = {"d_model": D, "n_heads": 2, "max_length": 8, "n_layers": 2}
NEVER: dict[str, tuple] = {
    "bool": ("no", 1, None),
    "int": (-1, 2.5, "2", True, None),
    "float": ("half", math.nan, math.inf, True, None),
    "str": ("no such", 1, None),
}


@pytest.mark.parametrize("layer", dict.fromkeys((*LAYERS.values(), *OTHERS)))
def test_a_value_of_another_type_or_below_zero_is_named(layer):
    options = inspect.signature(layer, eval_str=True).parameters.values()
    given = {one.name: GIVEN[one.name] for one in options if one.name in GIVEN}
    layer(**given)
    for option in options:
        zero = (0,) if option.name in ("d_model", "n_heads", "max_length") else ()
        kind = inspect.formatannotation(option.annotation)
        for value in zero + NEVER.get(kind.removesuffix(" | None"), ()):
            if value is None and kind.endswith("None"):
                continue
            with pytest.raises(ValueError, match=f"^{option.name}: expected .*, got ") as caught:
                layer(**given | {option.name: value})
            assert str(caught.value).endswith(repr(value))


@pytest.mark.parametrize(("layer", "options", "expected"), BAD)
def test_bad_options_are_named(layer, options, expected):
    widths = {"d_model": D, "n_heads": 2}
    taken = widths.keys() & inspect.signature(layer).parameters
    with pytest.raises(ValueError, match=f"^{next(iter(options))}: expected {expected}") as caught:
        layer(**{name: widths[name] for name in taken} | options)
    assert re.fullmatch(".*, got .*", str(caught.value))


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("lstm", {}, "attention: expected one of softmax, .*, got 'lstm'"),
        (None, {}, "attention: expected one of softmax, .*, got None"),
        (["linear"], {}, "attention: expected one of softmax, .*, got .'linear'."),
        ("linear", ["mode"], "attention_options: expected names and values, got .'mode'."),
        ("aft-full", {}, "attention_options: expected aft-full's max_length, got none"),
        ("aft-full", {"chunk_size": 4}, "attention_options: .* max_length, got chunk_size"),
        ("s4d", {"window": 4}, "attention_options: expected s4d's d_state, .*, got 'window'"),
    ],
)
def test_a_layer_that_cannot_be_made_is_named(name, options, expected):
    with pytest.raises(ValueError, match=f"^{expected}"):
        make_layer(name, D, 2, options=options)
