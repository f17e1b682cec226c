"""Sampling from any state machine: the same code for a KV cache and a recurrent state."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from .checks import LARGEST, finite, floating, instance, real, shown, tensor, whole, with_data
from .machines import StateMachine, check_machine

LARGEST_LOGIT = LARGEST[torch.float32]
MOST_SEED = 2**64 - 1  # what a torch.Generator takes


@dataclass(frozen=True)
class _Choice:
    """The options of `sample` that decide how a token is drawn from logits."""

    temperature: float
    top_k: int | None
    top_p: float | None


def sample(
    machine: StateMachine,
    prompt: Tensor,
    *,
    max_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    mask: Tensor | None = None,
) -> Iterator[Tensor]:
    """Read the prompt, then yield one token [B] a tick, each drawn from the machine's logits.

    machine: tokens [B] to logits [B, vocab_size]. To go on from a state that `machine.prefill`
        returned after n tokens, pass `dataclasses.replace(machine, initial_state=state)`, and with
        it `max_length=machine.max_length - n` unless that is None.
    prompt: integer tokens [B, T], T at least 1.
    max_tokens: how many to yield; fewer if the machine's max_length comes first.
    temperature: divides the logits. At 0 the most likely token is taken, and at a temperature so
        small that the logits overflow.
    top_k: keep only the k most likely tokens.
    top_p: keep only the smallest set of tokens whose probability reaches p (Holtzman et al., 2020).
    seed: makes the draw repeatable; None for a new draw each time.
    mask: bool [B, T], the tokens of the prompt that are read, at least one a row. So prompts of
        several lengths can be padded on either side. Rows of one length are read and continued
        together.

    Arguments are checked at the call, before the first token is requested. Raises ValueError.
    """
    how = _Choice(temperature, top_k, top_p)
    prompts, rows = [prompt], None
    if mask is not None and isinstance(prompt, Tensor) and prompt.dim() == 2:
        prompts, rows = _by_length(prompt, mask)
    for one in prompts:
        _check(machine, one, max_tokens, how)
    if seed is not None:
        whole("seed", seed, 0, MOST_SEED)
    prompts = [one.long() for one in prompts]  # an embedding does not accept bytes as indices
    generator = torch.Generator(prompt.device)
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    longest = max(one.shape[1] for one in prompts)
    room = max_tokens if machine.max_length is None else machine.max_length - longest
    # The last token yielded is never read, so a machine at its max_length can still give one.
    ticks = min(max_tokens, room + 1)
    streams = [_stream(machine, one, ticks, how, generator) for one in prompts]
    return streams[0] if rows is None else map(partial(_in_order, rows), *streams)


@torch.no_grad()
def _stream(
    machine: StateMachine,
    prompt: Tensor,
    ticks: int,
    how: _Choice,
    generator: torch.Generator,
) -> Iterator[Tensor]:
    if ticks < 1:
        return
    state, logits = machine.read(machine.initial_state, prompt)
    for tick in range(ticks):
        token = _choose(logits, how, generator)
        yield token
        if tick + 1 < ticks:
            state, logits = machine.step(state, token)


def _in_order(rows: Tensor, *tokens: Tensor) -> Tensor:
    return torch.cat(tokens)[rows]


def _by_length(prompt: Tensor, mask: Tensor) -> tuple[list[Tensor], Tensor]:
    """The rows grouped by length, and the place of each row of the prompt in these groups."""
    with_data("prompt", prompt)
    tensor("mask", mask, "[B, T]")
    if mask.dtype != torch.bool or mask.shape != prompt.shape or mask.device != prompt.device:
        wanted = f"bool {[*prompt.shape]} on {prompt.device}"
        got = f"{mask.dtype} {[*mask.shape]} on {mask.device}".removeprefix("torch.")
        raise ValueError(f"mask: expected {wanted}, got {got}")
    lengths = mask.sum(1)
    if not len(lengths):
        return [prompt], lengths
    if not lengths.all():
        row = int((lengths == 0).nonzero()[0])
        raise ValueError(f"mask: expected at least one token a row, got none in row {row}")
    order = lengths.argsort(stable=True)
    each, counts = lengths.unique(return_counts=True)
    groups = order.split(counts.tolist())
    prompts = [
        prompt[rows][mask[rows]].view(len(rows), length)
        for rows, length in zip(groups, each.tolist(), strict=True)
    ]
    return prompts, order.argsort()


def choose(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw one token [B] from logits [B, vocab_size]; see `sample` for the arguments.

    Raises ValueError for an argument that does not fit, and for logits that are NaN or +inf, which
    argmax would take for the largest, or all -inf.
    """
    floating("logits", logits, "[B, vocab_size]")
    if logits.dim() not in (1, 2) or not logits.shape[-1]:
        got = f"{logits.dtype} {[*logits.shape]}"
        raise ValueError(f"logits: expected floating numbers [B, vocab_size], got {got}")
    with_data("logits", logits)
    how = _Choice(temperature, top_k, top_p)
    _check_choice(how)
    if generator is not None:
        instance("generator", generator, torch.Generator)
    return _choose(logits, how, generator)


def _choose(logits: Tensor, how: _Choice, generator: torch.Generator | None) -> Tensor:
    """`choose` without checks, which run once a text, not once a token."""
    temperature, top_k, top_p = how.temperature, how.top_k, how.top_p
    highest = logits.amax(-1)  # NaN if one logit is
    size = highest.abs().max().item() if highest.numel() else 0.0
    if not size < math.inf:
        raise ValueError(
            "logits: expected finite numbers, got NaN, inf or -inf alone; are the weights finite?"
        )
    if temperature < torch.finfo(torch.float32).tiny:
        return logits.argmax(-1)
    best = (
        logits.argmax(-1, keepdim=True) if max(size, size / temperature) > LARGEST_LOGIT else None
    )
    logits = logits.float() / temperature
    if best is not None:
        # In rows whose logits overflow, the largest has probability one.
        certain = highest.double().abs() * max(1.0, 1 / temperature) > LARGEST_LOGIT
        largest = torch.full_like(logits, float("-inf")).scatter(-1, best, 0.0)
        logits = torch.where(certain.unsqueeze(-1), largest, logits)
    if top_k is not None and top_k < logits.shape[-1]:
        # By place, not by size: equal logits are frequent in bf16, and no more than k may stay.
        top = logits.topk(top_k, dim=-1)
        logits = torch.full_like(logits, float("-inf")).scatter(-1, top.indices, top.values)
    if top_p is not None and top_p < 1:
        ordered, order = logits.sort(dim=-1, descending=True)
        p = ordered.softmax(-1)
        # A token stays if the probability of those before it is below top_p; the first always
        # stays.
        drop = p.cumsum(-1) - p >= max(top_p, torch.finfo(p.dtype).tiny)
        logits = logits.masked_fill(drop.scatter(-1, order, drop), float("-inf"))
    return torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(-1)


def _check(machine: StateMachine, prompt: Tensor, max_tokens: int, how: _Choice) -> None:
    check_machine(machine)
    integers = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if not isinstance(prompt, Tensor) or prompt.dim() != 2 or prompt.dtype not in integers:
        got = type(prompt).__name__
        if isinstance(prompt, Tensor):
            got = f"{prompt.dtype} {list(prompt.shape)}"
        raise ValueError(f"prompt: expected integer tokens [B, T], got {got}")
    if prompt.shape[1] == 0:
        raise ValueError("prompt: expected at least one token, got none; start from a newline, say")
    with_data("prompt", prompt)
    if machine.vocab_size is not None and prompt.numel():
        low, high = int(prompt.min()), int(prompt.max())
        if low < 0 or high >= machine.vocab_size:
            wrong = low if low < 0 else high
            raise ValueError(
                f"prompt: expected tokens from 0 to {machine.vocab_size - 1}, got {wrong}"
            )
    if machine.max_length is not None and prompt.shape[1] > machine.max_length:
        raise ValueError(
            f"prompt: expected at most {machine.max_length} tokens, got {prompt.shape[1]}"
        )
    whole("max_tokens", max_tokens, 0)
    _check_choice(how)


def _check_choice(how: _Choice) -> None:
    temperature, top_k, top_p = how.temperature, how.top_k, how.top_p
    finite("temperature", temperature, "0 or more, and finite", low=0, dtype=torch.float32)
    if top_k is not None:
        whole("top_k", top_k)
    if top_p is not None:
        real("top_p", top_p)
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p: expected a number above 0 and at most 1, got {shown(top_p)}")
