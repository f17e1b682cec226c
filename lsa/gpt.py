"""GPT-2 (Radford et al., 2019), with its attention swapped by one argument.

Read it from the top: a GPT is an embedding, a stack of blocks and a head. Each of these is
a causal sequence transformation and a state machine; so is the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .checks import (
    boolean,
    finite,
    floating,
    instance,
    is_at_hand,
    looked_up,
    one_of,
    tensor,
    unsharded,
    whole,
)
from .documents import document_starts, places
from .layers import LAYERS, Layer, ResidualLinear, StartingLinear, make_layer
from .machines import StateMachine, elementwise, of_tokens, residual, stack
from .parallel import Ranks


@dataclass(frozen=True)
class GPTConfig:
    """The shape of a GPT-2, by default the smallest. The four published sizes are in `SCALES`."""

    vocab_size: int = 50257  # GPT-2's tokens; 256 when the text is bytes
    n_positions: int | None = 1024  # the longest text; None: no positions and no limit
    n_layer: int = 12
    n_head: int = 12
    d_model: int = 768
    attention: str = "softmax"  # a name in `lsa.layers.LAYERS`: the only thing this book changes
    attention_options: Mapping[str, Any] = field(default_factory=dict)  # options of that layer
    bias: bool = True  # GPT-2 has biases everywhere

    def __post_init__(self) -> None:
        for name in ("vocab_size", "n_layer", "n_head", "d_model"):
            whole(name, getattr(self, name), 0 if name in ("vocab_size", "n_layer") else 1)
        if self.n_positions is not None:
            whole("n_positions", self.n_positions)
        one_of("attention", self.attention, LAYERS)
        boolean("bias", self.bias)

    def attention_layer(self) -> Layer:
        """The attention layer, where models differ. Raises ValueError for unknown options."""
        return make_layer(
            self.attention, self.d_model, self.n_head,
            bias=self.bias, max_length=self.n_positions, options=self.attention_options,
        )  # fmt: skip


torch.serialization.add_safe_globals([GPTConfig])  # a checkpoint may hold it beside the weights


# Radford et al. (2019), table 2, with the parameter counts usually quoted, and a laptop's model.
SCALES: dict[str, dict[str, int]] = {
    "nano": {"n_layer": 4, "n_head": 2, "d_model": 128},
    "124M": {"n_layer": 12, "n_head": 12, "d_model": 768},
    "355M": {"n_layer": 24, "n_head": 16, "d_model": 1024},
    "774M": {"n_layer": 36, "n_head": 20, "d_model": 1280},
    "1.5B": {"n_layer": 48, "n_head": 25, "d_model": 1600},
}


def gpt_config(scale: str, **overrides: Any) -> GPTConfig:
    """The configuration of a named scale. overrides: fields of GPTConfig to change.

    Raises ValueError for a name not in SCALES or one that is no field.
    """
    one_of("scale", scale, SCALES)
    for name in overrides:
        one_of("overrides", name, GPTConfig.__dataclass_fields__)
    return GPTConfig(**{**SCALES[scale], **overrides})


class MLP(nn.Module):
    """GPT-2's MLP: four times wider, GELU (tanh form), and back. [..., D] to [..., D]."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.d_model, 4 * config.d_model, bias=config.bias)
        self.c_proj = ResidualLinear(4 * config.d_model, config.d_model, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


# The attribute of layers that take the option, and the reason why other layers refuse it.
TAKING = {
    "cu_seqlens": ("packs", "one document a row"),
    "ranks": ("splits", "nothing here splits it"),
}


def attended(layer: Any, x: Tensor, **options: Any) -> Tensor:
    """layer(x), with documents or ranks if given. Raises ValueError if the layer takes none."""
    given = {name: option for name, option in options.items() if option is not None}
    for name in given:
        says, reason = TAKING[name]
        if not getattr(layer, says, False):
            known = ", ".join(name for name, one in LAYERS.items() if getattr(one, says, False))
            got = type(layer).__name__
            raise ValueError(f"{name}: expected attention {known}, got {got}; {reason}")
    return layer(x, **given)


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)). [B, T, D] to [B, T, D].

    recompute: store x alone, and compute the rest again for the gradient. Off by default.
    """

    recompute = False

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.d_model, bias=config.bias)
        self.attn = config.attention_layer()
        self.ln_2 = nn.LayerNorm(config.d_model, bias=config.bias)
        self.mlp = MLP(config)

    def forward(
        self, x: Tensor, cu_seqlens: Tensor | None = None, ranks: Ranks | None = None
    ) -> Tensor:
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(  # the block draws no random numbers
                self._whole, x, cu_seqlens, ranks, use_reentrant=False, preserve_rng_state=False
            )
        return self._whole(x, cu_seqlens, ranks)

    def _whole(self, x: Tensor, cu_seqlens: Tensor | None, ranks: Ranks | None) -> Tensor:
        x = x + attended(self.attn, self.ln_1(x), cu_seqlens=cu_seqlens, ranks=ranks)
        return x + self.mlp(self.ln_2(x))

    def machine(self) -> StateMachine:
        return stack(
            residual(stack(elementwise(self.ln_1), self.attn.machine())),
            residual(elementwise(lambda x: self.mlp(self.ln_2(x)))),
        )


class GPT(nn.Module):
    """Tokens [B, T] to logits [B, T, vocab_size]; the logits at i predict token i + 1."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        instance("config", config, GPTConfig)
        for name in ("vocab_size", "n_layer"):  # a configuration may have none, for counting costs
            whole(name, getattr(config, name))
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.d_model)
        self.wpe = None
        if config.n_positions is not None:
            self.wpe = nn.Embedding(config.n_positions, config.d_model)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.d_model, bias=config.bias)
        self.initialise()

    def initialise(self, std: float = 0.02) -> None:
        """Draw the first weights, by default as in GPT-2; call it again after replacing blocks.

        Raises ValueError unless std is finite, and 0 or more.
        """
        std = finite("std", std, "0 or more, and finite", low=0)
        self.apply(partial(self._initialise, std=std))
        # Each residual branch is scaled down so that their sum keeps its size (GPT-2, 2.3).
        for module in self.modules():
            if isinstance(module, ResidualLinear):
                nn.init.normal_(module.weight, std=std * (2 * len(self.h)) ** -0.5)

    @staticmethod
    def _initialise(module: nn.Module, std: float) -> None:
        if isinstance(module, StartingLinear):
            return
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    @property
    def blocks(self) -> Sequence[Block]:
        """The modules of `h`, with their type."""
        return cast("Sequence[Block]", self.h)

    def embed(self, tokens: Tensor, start: int = 0, cu_seqlens: Tensor | None = None) -> Tensor:
        """Tokens [..., T] at positions start, start + 1, ... to [..., T, D].

        In packed documents, tokens [B, T], each document begins at position 0.
        """
        tensor("tokens", tokens, "[B, T]")
        if tokens.dtype not in (torch.int32, torch.int64) or not tokens.dim():
            got = f"{tokens.dtype} {list(tokens.shape)}"
            raise ValueError(f"tokens: expected int64 or int32 [B, T], got {got}")
        whole("start", start, 0)
        x = looked_up(self.wte, tokens)
        if self.wpe is None:
            return x
        if cu_seqlens is None:
            end = start + tokens.shape[-1]
            self._check_length(end)
            return x + self.wpe.weight[start:end]
        return x + self.wpe(self._places(document_starts(cu_seqlens, tokens)))

    def _places(self, starts: Tensor) -> Tensor:
        """Positions of the tokens of packed rows [B, T]."""
        place = places(starts)
        if self.wpe is not None and starts.shape[1] > self.wpe.num_embeddings:  # else all fit
            self._check_length(int(place.max()) + 1)
        return place

    def _check_length(self, longest: int) -> None:
        if self.wpe is not None and longest > self.wpe.num_embeddings:
            raise ValueError(
                f"tokens: expected at most n_positions = {self.wpe.num_embeddings} of them, "
                f"got {longest}; a learned position has nothing to say beyond its table"
            )

    def head(self, x: Tensor) -> Tensor:
        """[..., D] to logits [..., vocab_size], with the weights of wte, as in GPT-2."""
        return F.linear(self.ln_f(x), self.wte.weight)

    def forward(
        self, tokens: Tensor, cu_seqlens: Tensor | None = None, ranks: Ranks | None = None
    ) -> Tensor:
        """Logits. cu_seqlens: where documents end in packed rows, as for `linear_attention`.

        ranks: the ranks that share the sequence; tokens are this rank's part, cu_seqlens of the
        whole rows. Parameters are the same on each rank; a gradient is the sum over the ranks.
        """
        if isinstance(tokens, Tensor) and tokens.dim() != 2:
            raise ValueError(f"tokens: expected [B, T], got {[*tokens.shape]}")
        if ranks is None:
            x = self.embed(tokens, 0, cu_seqlens)
        else:
            instance("ranks", ranks, Ranks)
            x, cu_seqlens = self._embed_part(tokens, cu_seqlens, ranks)
        options = {"cu_seqlens": cu_seqlens, "ranks": ranks}
        given = {name: option for name, option in options.items() if option is not None}
        for block in self.h:
            x = block(x, **given)
        return self.head(x)

    def _embed_part(
        self, tokens: Tensor, cu_seqlens: Tensor | None, ranks: Ranks
    ) -> tuple[Tensor, Tensor | None]:
        """This rank's part embedded, and the mask of first tokens of documents if rows are packed.

        A text that is too long is refused here, so that all ranks refuse it.
        """
        (B, T), lengths = tokens.shape, ranks.lengths(tokens.shape[1], tokens.device)
        start = sum(lengths[: ranks.rank])
        if cu_seqlens is None:
            self._check_length(sum(lengths))
            return self.embed(tokens, start), None
        starts = document_starts(cu_seqlens, tokens.new_empty(1, 1).expand(B, sum(lengths)))
        part = slice(start, start + T)
        x = looked_up(self.wte, tokens)
        if self.wpe is not None:
            x = x + self.wpe(self._places(starts)[:, part])
        return x, starts[:, part]

    def machine(self) -> StateMachine:
        """One token a tick: [B] to logits [B, vocab_size]. Raises ValueError of a sharded model."""
        unsharded("machine", self)
        embedding = StateMachine(
            initial_state=0,
            step=lambda t, token: (t + 1, self.embed(token.unsqueeze(-1), t).squeeze(-2)),
            many=lambda t, tokens: (t + tokens.shape[-1], self.embed(tokens, t)),
            vocab_size=self.config.vocab_size,
            max_length=self.config.n_positions,
        )
        blocks = (block.machine() for block in self.blocks)
        return of_tokens(stack(embedding, *blocks, elementwise(self.head)))

    @property
    def n_parameters(self) -> int:
        """Parameters, the embedding of tokens among them, the position table not."""
        positions = 0 if self.wpe is None else self.wpe.weight.numel()
        return sum(p.numel() for p in self.parameters()) - positions


WRAPPED = re.compile(r"^((module|_orig_mod|transformer)\.)+")  # before a weight's own name


def gpt2_state_dict(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state_dict() of Hugging Face's or nanoGPT's GPT-2, under this module's names.

    Hugging Face stores projections [in, out]; nanoGPT and torch.nn.Linear store [out, in]. The
    names of a model that was compiled, or trained by DistributedDataParallel, are accepted. Raises
    ValueError for what is no tensor, a projection of another shape, and an untied output layer.
    """
    instance("weights", weights, Mapping)
    renamed = {
        WRAPPED.sub("", name): weight
        for name, weight in weights.items()
        if not name.endswith(("lm_head.weight", ".attn.bias", ".attn.masked_bias"))
    }
    projections = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    for name, weight in renamed.items():
        tensor(name, weight, "of a state_dict()")
        if name.endswith(projections) and weight.dim() != 2:
            raise ValueError(f"{name}: expected two dimensions, got {[*weight.shape]}")
    heads = [w for name, w in weights.items() if name.endswith("lm_head.weight")]
    tables = [w for name, w in weights.items() if name.endswith("wte.weight")]
    for head, embedding in zip(heads, tables, strict=False):
        tensor("lm_head.weight", head, "of a state_dict()")
        if not (head.is_meta or torch.equal(head.to(embedding), embedding)):
            raise ValueError("lm_head.weight: expected wte.weight, got other weights")
    # Only these projections tell the layouts apart: others may be square.
    first = [w for name, w in renamed.items() if name.endswith(("c_attn.weight", "c_fc.weight"))]
    if any(w.shape[0] > w.shape[1] for w in first):
        return renamed
    return {n: w.t() if n.endswith(projections) else w for n, w in renamed.items()}


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy in nats a token. logits [B, T, vocab_size], targets [B, T], whole numbers.

    A target of -100 is left out. Raises ValueError for dtypes, shapes or targets that do not fit.
    """
    floating("logits", logits, "[B, T, vocab_size]")
    tensor("targets", targets, "[B, T]")
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise ValueError(f"targets: expected integer tokens, got {targets.dtype}")
    if targets.shape != logits.shape[:-1]:
        wanted, got = list(logits.shape[:-1]), list(targets.shape)
        raise ValueError(f"targets: expected {wanted}, a token for each of the logits, got {got}")
    if is_at_hand(targets):
        wrong = targets[(targets != -100) & ((targets < 0) | (targets >= logits.shape[-1]))]
        if len(wrong):
            expected = f"tokens from 0 to {logits.shape[-1] - 1}, or -100"
            raise ValueError(f"targets: expected {expected}, got {int(wrong[0])}")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten().to(torch.long))
