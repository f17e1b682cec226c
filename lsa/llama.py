"""Llama (Touvron et al., 2023), in which one argument chooses how each head attends.

RMSNorm, rotary positions, SwiGLU and grouped keys. As in `lsa.gpt`, every part is a causal sequence
transformation and a state machine. `lsa.llama_files` reads trained weights.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .checks import boolean, finite, instance, looked_up, one_of, tensor, whole
from .layers.layer import check_batch
from .layers.mixes import Mix, SoftmaxMix, WindowMix
from .layers.window_delta import WindowDeltaMix
from .layers.window_state import WindowStateMix
from .machines import StateMachine, elementwise, of_tokens, residual, single, stack


def linear_mix(
    n_heads: int, head_width: int, *,
    feature_map: str = "elu_plus_one", groups: Sequence[int] | None = None, **options: Any,
) -> Mix:  # fmt: skip
    """Linear attention: a state for all tokens, and no softmax window."""
    return WindowStateMix(
        n_heads, head_width,
        window=0, first=0, feature_map=feature_map, groups=groups, **options,
    )  # fmt: skip


# Kinds of attention that a head can have, with the options of their constructors.
MIXES: dict[str, Callable[..., Mix]] = {
    "softmax": SoftmaxMix,
    "window": WindowMix,
    "linear": linear_mix,
    "window-state": WindowStateMix,
    "window-delta": WindowDeltaMix,
}
Attention = Mapping[str, Mapping[str, Any]]
SOFTMAX: Attention = {"all": {"kind": "softmax"}}


@dataclass(frozen=True)
class LlamaConfig:
    """The shape of a Llama, by default SmolLM2-135M's."""

    vocab_size: int = 49152
    n_layer: int = 30
    n_head: int = 9
    n_kv_head: int = 3  # heads of keys and values; each serves n_head / n_kv_head query heads
    head_width: int = 64  # even: rotary positions rotate pairs of features
    d_model: int = 576
    d_mlp: int = 1536
    rope_base: float = 1e5
    norm_eps: float = 1e-5
    tied: bool = True  # the output projection is the embedding
    max_length: int | None = 8192  # trained length; longer texts are possible

    def __post_init__(self) -> None:
        for name in ("vocab_size", "n_head", "n_kv_head", "head_width", "d_model", "d_mlp"):
            whole(name, getattr(self, name))
        whole("n_layer", self.n_layer, 0)
        if self.max_length is not None:
            whole("max_length", self.max_length)
        if self.n_head % self.n_kv_head:
            expected = f"a divisor of n_head {self.n_head}"
            raise ValueError(f"n_kv_head: expected {expected}, got {self.n_kv_head}")
        if self.head_width % 2:
            raise ValueError(f"head_width: expected an even number, got {self.head_width}")
        for name in ("rope_base", "norm_eps"):
            finite(name, getattr(self, name), "a finite number above 0", low=1e-30)
        boolean("tied", self.tied)


def chosen(attention: Attention, config: LlamaConfig) -> list[list[dict[str, Any]]]:
    """The kind and options of each layer and head, from `attention`.

    Raises ValueError, naming the key, for an unknown layer, head, kind or option.
    """
    layers, heads = config.n_layer, config.n_head
    if not isinstance(attention, Mapping):
        raise ValueError(f"attention: expected layers and their kinds, got {attention!r:.60}")
    known = {"all", *(str(n) for n in range(layers))}
    known |= {f"{n}.{h}" for n in range(layers) for h in range(heads)}
    for key, value in attention.items():
        if key not in known:
            expected = f"'all', a layer below {layers} as '3' or one of its {heads} heads as '3.0'"
            raise ValueError(f"attention: expected {expected}, got {key!r:.60}")
        if not isinstance(value, Mapping):
            raise ValueError(f"attention: expected a kind and options at {key}, got {value!r:.60}")
        one_of("kind", value.get("kind"), MIXES)
        linear = value["kind"] == "linear"  # a state of all tokens
        options = inspect.signature(WindowStateMix if linear else MIXES[value["kind"]]).parameters
        fixed = ["n_heads", "head_width", "groups", *["window", "first", "adjacent"] * linear]
        taken = [o for o in options if o not in fixed]
        for option in value:
            if option not in (*taken, "kind"):
                of_kind = f"option of {value['kind']}"
                wanted = f"an {of_kind} ({', '.join(taken)})" if taken else f"no {of_kind}"
                raise ValueError(f"attention: expected {wanted} at {key!r}, got {option!r:.60}")
    everywhere = attention.get("all", SOFTMAX["all"])
    return [
        [dict(attention.get(f"{n}.{h}", attention.get(str(n), everywhere))) for h in range(heads)]
        for n in range(layers)
    ]


def rotated(x: Tensor, position: Tensor, base: float) -> Tensor:
    """x [B, T, H, K] at positions [T], with rotary positions applied.

    Su et al. (2024). Features i and i + K / 2 rotate together by position * base ** (-2 i / K), as
    in Hugging Face's Llama.
    """
    K = x.shape[3]
    exponents = torch.arange(0, K, 2, device=x.device, dtype=torch.float32) / K
    angles = torch.outer(position, 1.0 / base**exponents).unsqueeze(1)  # [T, 1, K / 2]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def positions(start: int, x: Tensor) -> Tensor:
    """Positions of x [B, T, ...] from `start` on: [T], float32."""
    return torch.arange(start, start + x.shape[1], device=x.device, dtype=torch.float32)


Parts = Sequence[tuple[list[int], list[int]]]


def mixes_of(
    heads: Sequence[Mapping[str, Any]], config: LlamaConfig
) -> tuple[Parts, nn.ModuleList]:
    """One mix for all heads of a layer that attend alike, and the query and key heads of each.

    heads: the kind and options of each head, from `chosen`.
    """
    kinds: list[Mapping[str, Any]] = []
    for head in heads:
        if head not in kinds:
            kinds.append(head)
    parts, mixes = [], nn.ModuleList()
    share = config.n_head // config.n_kv_head
    for kind in kinds:
        members = [h for h, head in enumerate(heads) if head == kind]
        keys = sorted({h // share for h in members})
        options = {name: value for name, value in kind.items() if name != "kind"}
        groups = [keys.index(h // share) for h in members]
        mix = MIXES[kind["kind"]](len(members), config.head_width, groups=groups, **options)
        parts.append((members, keys))
        mixes.append(cast("nn.Module", mix))
    return parts, mixes


def mixed(parts: Parts, q: Tensor, k: Tensor, v: Tensor, each: Callable[..., Tensor]) -> Tensor:
    """o [B, T, H, K]: each(i, q, k, v) for the heads of every mix i, in the order of heads."""
    if len(parts) == 1:
        return each(0, q, k, v)
    found = [
        each(i, q[:, :, members], k[:, :, keys], v[:, :, keys])
        for i, (members, keys) in enumerate(parts)
    ]
    order = [h for members, _ in parts for h in members]
    back = sorted(range(len(order)), key=order.__getitem__)
    return torch.cat(found, 2)[:, :, back]


def placed(mix: Any, q: Tensor, k: Tensor, start: int, base: float) -> tuple[Tensor, Tensor]:
    """q and k from position `start` on as a mix takes them: also at other positions, side by side.

    With `adjacent` q also as the first tokens see it, without `rotary` q and k also at position 0.
    """
    position = positions(start, q)
    faces = [q]
    if getattr(mix, "adjacent", False):
        faces.append(rotated(q, (mix.first + mix.window - 1 - position).clamp(max=0), base))
    if not getattr(mix, "rotary", True):
        faces.append(rotated(q, -position, base))
        k = torch.cat((k, rotated(k, -position, base)), -1)
    return torch.cat(faces, -1), k


class LlamaAttention(nn.Module):
    """Grouped-query attention in which each head may attend differently. [B, T, D] to [B, T, D]."""

    def __init__(self, config: LlamaConfig, heads: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        H, G, K, D = config.n_head, config.n_kv_head, config.head_width, config.d_model
        self.config = config
        self.q_proj = nn.Linear(D, H * K, bias=False)
        self.k_proj = nn.Linear(D, G * K, bias=False)
        self.v_proj = nn.Linear(D, G * K, bias=False)
        self.o_proj = nn.Linear(H * K, D, bias=False)
        self.attend(*mixes_of(heads, config))

    def attend(self, parts: Parts, mixes: nn.ModuleList) -> None:
        """Set how each head attends, by `mixes_of`; parameters of the old mixes are lost."""
        self.parts = parts
        self.mixes = mixes.to(self.q_proj.weight)

    def qkv(self, x: Tensor, start: int) -> tuple[Tensor, Tensor, Tensor]:
        """q [B, T, H, K], k and v [B, T, G, K] of x [B, T, D] at positions start, start + 1, ..."""
        K, base = self.config.head_width, self.config.rope_base
        q, k, v = (p(x).unflatten(-1, (-1, K)) for p in (self.q_proj, self.k_proj, self.v_proj))
        position = positions(start, x)
        return rotated(q, position, base), rotated(k, position, base), v

    def forward(self, x: Tensor) -> Tensor:
        def each(i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            mix = self.mixes[i]
            return mix(*placed(mix, q, k, 0, self.config.rope_base), v)

        o = mixed(self.parts, *self.qkv(x, 0), each=each)
        return self.o_proj(o.flatten(-2))

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state: a position, and the state of every mix."""

        def advanced(state: tuple, x: Tensor, how: str) -> tuple[tuple, Tensor]:
            position, *states = state

            def each(i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
                mix = self.mixes[i]
                q, k = placed(mix, q, k, position, self.config.rope_base)
                states[i], o = getattr(mix, how)(states[i], q, k, v)
                return o

            try:
                o = mixed(self.parts, *self.qkv(x, position), each=each)
            except (RuntimeError, ValueError) as error:
                check_batch(states, x, error)
                raise
            return (position + x.shape[1], *states), self.o_proj(o.flatten(-2).to(x.dtype))

        mixes = cast("Sequence[Mix]", self.mixes)
        start = (0, *(mix.start(self.q_proj.weight) for mix in mixes))
        return StateMachine(
            start,
            single(lambda state, x: advanced(state, x, "tick")),
            lambda state, x: advanced(state, x, "many"),
        )


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x)), Shazeer (2020). [..., D] to [..., D]."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.d_model, config.d_mlp, bias=False)
        self.up_proj = nn.Linear(config.d_model, config.d_mlp, bias=False)
        self.down_proj = nn.Linear(config.d_mlp, config.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)). [B, T, D] to [B, T, D]."""

    def __init__(self, config: LlamaConfig, heads: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.d_model, config.norm_eps)
        self.self_attn = LlamaAttention(config, heads)
        self.post_attention_layernorm = nn.RMSNorm(config.d_model, config.norm_eps)
        self.mlp = SwiGLU(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))

    def machine(self) -> StateMachine:
        return stack(
            residual(stack(elementwise(self.input_layernorm), self.self_attn.machine())),
            residual(elementwise(lambda x: self.mlp(self.post_attention_layernorm(x)))),
        )


class Llama(nn.Module):
    """Tokens [B, T] to logits [B, T, vocab_size]. Parameters are named as in Hugging Face's.

    attention: a kind of `MIXES` and its options, for 'all', for a layer ('18') or for one head
        ('18.6'); the most specific entry counts. Softmax by default. Layers and heads are counted
        from 0.
    """

    def __init__(self, config: LlamaConfig, *, attention: Attention = SOFTMAX) -> None:
        super().__init__()
        instance("config", config, LlamaConfig)
        self.config, self.attention = config, attention
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.layers = nn.ModuleList(LlamaBlock(config, h) for h in chosen(attention, config))
        self.norm = nn.RMSNorm(config.d_model, config.norm_eps)
        self.lm_head = None
        if not config.tied:
            self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    @property
    def blocks(self) -> Sequence[LlamaBlock]:
        """The modules of `layers`, with their type."""
        return cast("Sequence[LlamaBlock]", self.layers)

    def attend(self, attention: Attention) -> None:
        """Change how the heads attend, with the same weights; see `attention` above."""
        mixes = [mixes_of(heads, self.config) for heads in chosen(attention, self.config)]
        for block, one in zip(self.blocks, mixes, strict=True):
            block.self_attn.attend(*one)
        self.attention = attention

    def embed(self, tokens: Tensor) -> Tensor:
        """Tokens [...] to [..., D]."""
        tensor("tokens", tokens, "[B, T]")
        if tokens.dtype not in (torch.int32, torch.int64):
            raise ValueError(f"tokens: expected int64 or int32, got {tokens.dtype}")
        return looked_up(self.embed_tokens, tokens)

    def head(self, x: Tensor) -> Tensor:
        """[..., D] to logits [..., vocab_size]."""
        head = self.embed_tokens if self.lm_head is None else self.lm_head
        return F.linear(self.norm(x), head.weight)

    def hidden(self, tokens: Tensor) -> Tensor:
        """The input of `head`, [B, T, D]. Logits of a long text need much memory."""
        x = self.embed(tokens)
        for block in self.layers:
            x = block(x)
        return x

    def forward(self, tokens: Tensor) -> Tensor:
        if isinstance(tokens, Tensor) and tokens.dim() != 2:
            raise ValueError(f"tokens: expected [B, T], got {[*tokens.shape]}")
        return self.head(self.hidden(tokens))

    def machine(self) -> StateMachine:
        """One token a tick: [B] to logits [B, vocab_size]."""
        embedding = StateMachine(
            initial_state=(),
            step=lambda state, token: (state, self.embed(token)),
            many=lambda state, tokens: (state, self.embed(tokens)),
            vocab_size=self.config.vocab_size,
        )
        blocks = (block.machine() for block in self.blocks)
        return of_tokens(stack(embedding, *blocks, elementwise(self.head)))
