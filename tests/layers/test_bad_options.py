"""What a layer refuses is named in one line."""

import pytest
import torch

from lsa import KGram, LinearAttention, SoftmaxAttention, TaylorAttention
from lsa.layers import make_layer
from lsa.layers.aft import AFTFull, AFTLocal
from lsa.layers.convolution import CausalConv
from lsa.layers.delta import DeltaNet
from lsa.layers.gated import GatedLinearAttention
from lsa.layers.mamba import S6, Mamba
from lsa.layers.power import PowerAttention
from lsa.layers.rwkv import RWKVChannelMixing
from lsa.layers.s4 import S4
from lsa.layers.s4d import S4D
from lsa.layers.window import WindowAttention

D = 12
BAD = {
    "n_heads: expected a divisor of d_model 12, got 5": lambda: SoftmaxAttention(D, 5),
    "feature_map: expected one of elu_plus_one.*": lambda: LinearAttention(
        D, 2, feature_map="sigmoid"
    ),
    "normalize: expected False with output_norm, got True": lambda: LinearAttention(
        D, 2, output_norm=True
    ),
    "degree: expected at least 0, got -1": lambda: TaylorAttention(D, 2, degree=-1),
    "scale: expected a finite number above 0, got 0.0": lambda: TaylorAttention(D, 2, scale=0.0),
    "scale: expected a number, got 'half'": lambda: TaylorAttention(D, 2, scale="half"),
    "log_decay: expected finite numbers, at most 0, got 0.5": lambda: TaylorAttention(
        D, 2, log_decay=[0.5, 0.0]
    ),
    "log_decay: expected one number for each of 2 heads, got 1": lambda: PowerAttention(
        D, 2, log_decay=[-0.5]
    ),
    "k: expected at least 1, got 0": lambda: KGram(D, 0, 4),
    "attention_options: expected aft-full's max_length, got none": lambda: make_layer(
        "aft-full", D, 3
    ),
    "attention_options: expected aft-full's max_length, got chunk_size": lambda: make_layer(
        "aft-full", D, 3, options={"chunk_size": 4}
    ),
    "attention_options: expected s4d's d_state, .*, got 'window'": lambda: make_layer(
        "s4d", D, 3, options={"window": 4}
    ),
    "max_length: expected at least 1, got 0": lambda: AFTFull(D, max_length=0),
    "chunk_size: expected at least 1, got 0": lambda: AFTFull(D, max_length=4, chunk_size=0),
    "window: expected at least 1, got 0": lambda: AFTLocal(D, window=0),
    "max_length: expected at least 1, got -1": lambda: AFTLocal(D, window=2, max_length=-1),
    "x: expected at most max_length 4 tokens, got 5": lambda: AFTFull(D, max_length=4)(
        torch.zeros(1, 5, D)
    ),
    "window: expected at least 1, got -2": lambda: WindowAttention(D, 2, window=-2),
    "first: expected at least 0, got -1": lambda: WindowAttention(D, 2, first=-1),
    "hidden: expected at least 1, got 0": lambda: RWKVChannelMixing(D, hidden=0),
    "d_state: expected an even number from 2, got 5": lambda: S4(D, d_state=5),
    "mode: expected one of fft, direct, recurrent, got 'scan'": lambda: S4D(D, mode="scan"),
    "discretisation: expected one of zoh, bilinear, got 'euler'": lambda: S4D(
        D, discretisation="euler"
    ),
    "d_state: expected at least 1, got 0": lambda: S6(D, d_state=0),
    "input_rule: expected one of euler, zoh, got 'foh'": lambda: Mamba(D, input_rule="foh"),
    "mode: expected one of auto, kernel, steps, tree, got 'fft'": lambda: S6(D, mode="fft"),
    "expand: expected at least 1, got 0": lambda: Mamba(D, expand=0),
    "width: expected at least 1, got 0": lambda: CausalConv(D, width=0),
    "decay: expected one of fixed, head, channel, got 'row'": lambda: GatedLinearAttention(
        D, 2, decay="row"
    ),
    "feature_map: expected one that is not negative with normalize, got 'identity'": lambda: (
        GatedLinearAttention(D, 2, normalize=True)
    ),
    "degree: expected an even number from 2, got 3": lambda: PowerAttention(D, 2, degree=3),
    "n_heads: expected a divisor of d_model 12, got 7": lambda: DeltaNet(D, 7),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_options_are_named(message):
    with pytest.raises(ValueError, match="^" + message.replace("'", ".")):
        BAD[message]()
