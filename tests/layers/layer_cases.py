"""Every layer that the laws are held to: the catalogue's own, then their options."""

from functools import partial

from lsa.attention.api import MODES
from lsa.attention.feature_maps import FEATURE_MAPS, SIGNED
from lsa.layers import LAYERS, DeepRNN, KGram, LinearAttention, SoftmaxAttention, TaylorAttention
from lsa.layers import make_layer as make
from lsa.layers.aft import AFTFull, AFTLocal
from lsa.layers.delta import DeltaNet
from lsa.layers.gated import DECAYS, GatedLinearAttention
from lsa.layers.mamba import S6, Mamba
from lsa.layers.power import PowerAttention
from lsa.layers.rwkv import RWKVChannelMixing
from lsa.layers.s4 import S4
from lsa.layers.s4d import DISCRETISATIONS, S4D
from lsa.layers.state_features import STATE_MAPS
from lsa.layers.state_space import MODES as STATE_SPACE_MODES
from lsa.layers.window import WindowAttention
from lsa.layers.window_state import WindowStateAttention

D = 12
LONGEST = 211  # prime; chunks of 64 are crossed, and a cache has grown four times
DECAY = (-0.7, 0.0, -0.1)
CASES = {
    **{name: partial(make, name, D, 3, max_length=LONGEST) for name in LAYERS},
    "softmax-decay": partial(SoftmaxAttention, D, 3, log_decay=DECAY),
    **{
        f"linear-decay-{mode}": partial(
            LinearAttention, D, 3, mode=mode, chunk_size=4, log_decay=DECAY
        )
        for mode in MODES
    },
    **{
        f"linear-{mode}": partial(LinearAttention, D, 3, mode=mode)
        for mode in MODES
        if mode != "chunked"
    },
    "linear-unnormalized": partial(LinearAttention, D, 2, normalize=False, chunk_size=3),
    "linear-output-norm": partial(LinearAttention, D, 2, normalize=False, output_norm=True),
    **{
        f"linear-{name}": partial(LinearAttention, D, 2, feature_map=name)
        for name in FEATURE_MAPS
        if name not in SIGNED
    },
    "linear-identity": partial(LinearAttention, D, 2, feature_map="identity", normalize=False),
    "linear-silu": partial(
        LinearAttention, D, 2, feature_map="silu", normalize=False, output_norm=True
    ),
    **{f"taylor-{n}": partial(TaylorAttention, D, 3, degree=n) for n in (0, 4)},
    "taylor-decay": partial(TaylorAttention, D, 3, scale=1.0, log_decay=DECAY),
    "deep-rnn": partial(DeepRNN, D, 3),
    **{f"kgram-{k}": partial(KGram, D, k, 16) for k in (1, 4)},
    "aft-full-chunks": partial(AFTFull, D, max_length=LONGEST, chunk_size=5),
    "aft-local-lengths": partial(AFTLocal, D, window=5, max_length=LONGEST),
    "aft-local-shared": partial(AFTLocal, D, window=1),
    "rwkv-channel": partial(RWKVChannelMixing, D),
    **{f"s4-{mode}": partial(S4, D, d_state=8, mode=mode) for mode in STATE_SPACE_MODES},
    **{f"s4d-{rule}": partial(S4D, D, d_state=8, discretisation=rule) for rule in DISCRETISATIONS},
    "s4d-direct": partial(S4D, D, d_state=4, mode="direct"),
    "s6-tree": partial(S6, D, d_state=4, mode="tree"),
    "s6-steps": partial(S6, D, d_state=4, input_rule="zoh", chunk_size=5),
    "mamba-4": partial(Mamba, D, d_state=4),
    **{
        f"gated-{decay}": partial(GatedLinearAttention, D, 3, decay=decay)
        for decay in DECAYS
        if decay != "head"
    },
    "gated-normalized": partial(
        GatedLinearAttention, D, 2, feature_map="elu_plus_one", normalize=True, chunk_size=5
    ),
    "delta-chunks": partial(DeltaNet, D, 3, chunk_size=5),
    "delta-gated": partial(DeltaNet, D, 3, gated=True),
    "delta-adds": partial(DeltaNet, D, 3, erase=False, chunk_size=5),
    "delta-adds-gated": partial(DeltaNet, D, 3, erase=False, gated=True),
    "delta-adds-plainly": partial(DeltaNet, D, 3, erase=False, unit=False, write_gate=False),
    "power-4": partial(PowerAttention, D, 3, degree=4),
    "power-gated": partial(PowerAttention, D, 3, gated=True),
    "power-decay": partial(PowerAttention, D, 3, log_decay=DECAY),
    "power-gated-decay": partial(PowerAttention, D, 3, gated=True, log_decay=DECAY),
    **{
        f"window-{window}-{first}": partial(WindowAttention, D, 3, window=window, first=first)
        for window, first in ((1, 0), (3, 0), (1, 2), (5, 1), (2, 7))
    },
    "window-decay": partial(WindowAttention, D, 3, window=4, first=2, log_decay=DECAY),
    **{
        f"window-state-{name}": partial(WindowStateAttention, D, 3, window=3, feature_map=name)
        for name in STATE_MAPS
    },
    **{
        f"window-state-{window}-{first}": partial(
            WindowStateAttention, D, 3, window=window, first=first, features=6, log_decay=DECAY
        )
        for window, first in ((0, 0), (0, 2), (1, 0), (4, 5))
    },
}
# Where an FFT lies between the two faces, its error is that of the largest output.
THROUGH_FFT = ("s4", "s4d", "s4-fft", "s4d-zoh", "s4d-bilinear")
