"""Convert a trained Llama so that only its most important heads look back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from lsa.llama import Llama
from lsa.llama_files import Text, load_llama, save_llama, smollm2_path

from .harness.core import record
from .harness.core.plan import Session, UsageError
from .harness.core.stopping import Interrupted, Stop
from .harness.learning.distilled_runs import distill_through
from .harness.learning.distilling import Distillation
from .harness.learning.prepared import Split
from .harness.learning.returning import Tokens, Trained, passages
from .linearise import ARMS, BASE, LONGER, NEAR, UNROTATED
from .recipes import FADING, RANKED, attention_of, in_turn, ranked_heads, ranking_name
from .remove_exponential import slopes

# How heads attend that may not look back.
WAYS = {arm["kind"]: arm for arm in (UNROTATED, ARMS["window"])}
TEACHING = {**BASE, **LONGER}  # states fitted to shorter texts fail on long ones
TEXTS = 8  # that rank the heads, as in `remove_exponential`
Splits = Callable[[], Mapping[str, Split]]


def convert(
    model: Path | None,
    out: Path,
    *,
    keep: int,
    way: str,
    tokens: int,
    splits: Splits,
    distances: Sequence[int] = (RANKED,),
) -> None:
    """Convert a model: write config.json, model.safetensors and tokenizer.json into `out`.

    model: a GGUF file or a folder of Hugging Face; None: the installed SmolLM2-135M-Instruct.
    keep: number of heads that may look back, the first of the ranking by gradient. With none the
        first tokens count as next to the window, and no text is too long for the model.
    way: a key of `WAYS`, how all others attend; `window-state` first learns its features.
    tokens: to learn from through the whole model, rounded up to whole updates. An interrupted
        conversion continues when it is called again.
    splits: the novels that rank the heads and teach the model.
    distances: after how many tokens what ranks them comes again. Of several rankings the first
        heads are taken in turn.

    Raises UsageError, Interrupted.
    """
    for distance in distances:
        if distance < 1:
            raise UsageError(f"--distance: expected 1 or more tokens, got {distance}")
    if tokens < 0:
        raise UsageError(f"--tokens: expected 0 or more, got {tokens}")
    if any((out / name).exists() for name in ("config.json", "model.safetensors")):
        raise UsageError(f"--out: expected a folder without a model, got {out}")
    try:
        path = smollm2_path() if model is None else model
        llama, text = load_llama(path).requires_grad_(False), Text.of(path)
    except ValueError as error:
        raise UsageError(f"--model: {str(error).removeprefix('path: ')}") from error
    heads = llama.config.n_layer * llama.config.n_head
    if not 0 <= keep <= heads:
        raise UsageError(f"--keep: expected 0 to {heads} heads, got {keep}")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # before the heads are ranked, which takes minutes
        raise UsageError(f"--out: expected a folder, got {out}: {error.strerror}") from error
    teacher = Trained(llama, text.tokens, _digest(path))
    ranking = in_turn(
        stored_ranking(teacher.sha256, distance)
        or rank(llama, text.tokens, splits()["validation"], distance)
        for distance in distances
    )
    confined = WAYS[way] if keep else _reading_on(way, llama.config.n_head)
    attention, unfinished = attention_of(confined, ranking[:keep]), out / "unfinished.pt"
    if tokens or way == "window-state":
        config = _lessons(keep, {way: confined}, tokens)
        one = Distillation(config, {way: attention}, range(llama.config.n_layer), teacher, splits())
        _teach(one, unfinished)
        llama = one.students[way].model
    save_llama(llama, out, attention=attention)
    text.save(out)
    unfinished.unlink(missing_ok=True)


def _reading_on(way: str, heads: int) -> dict[str, Any]:
    """How all heads attend in a model that reads on past its longest texts; see `whole_novels`."""
    fading = {"log_decay": [FADING] * heads} if way == "window-state" else {}
    return {**WAYS[way], "adjacent": True, **fading}


def _lessons(keep: int, arms: Mapping[str, Mapping[str, Any]], tokens: int) -> dict[str, Any]:
    """The configuration of a `Distillation`: what the one of `arms` learns from."""
    update = TEACHING["texts"] * TEACHING["length"]
    config = {**TEACHING, "softmax_heads": keep, "tokens": -(-tokens // update) * update}
    config |= {"measure_every": update, "asked": [], "last": [], "arms": arms}
    return config | {"feature_tokens": TEACHING["feature_tokens"] * ("window-state" in arms)}


def stored_ranking(sha256: str, distance: int = RANKED) -> list[tuple[int, int]]:
    """Layer and head of a model's heads by the stored ranking, most important first; [] if none."""
    name = ranking_name("passages", distance)
    for one in record.load("remove_exponential", partial=False):
        if one["name"] == name and one["tables"]["weights"]["sha256"] == [sha256]:
            places = [record.RESULTS]
            return ranked_heads(one["config"]["model"], "passages", "gradient", places, distance)
    return []


def rank(
    model: Llama, tokens: Tokens, split: Split, distance: int = RANKED
) -> list[tuple[int, int]]:
    """Rank heads by the gradient of the gain, a mean over texts.

    It takes minutes on a CPU, and at a distance of 4,096 an hour and 10 GB. Raises UsageError.
    """
    try:
        texts = passages(split, tokens, distance=distance, texts=TEXTS)
    except ValueError as error:
        raise UsageError(f"--distance: {distance}: {error}") from error
    shown = tqdm(texts, desc="ranking heads", unit="text")
    mean = torch.stack([slopes(model, text, NEAR)[0] for text in shown]).mean(0)
    order = np.argsort(mean.flatten().numpy(), kind="stable")
    return [divmod(int(place), mean.shape[1]) for place in order]


def _teach(one: Distillation, checkpoint: Path) -> None:
    """Train to the end of the plan, from the checkpoint if there is one."""
    total = one.config["feature_tokens"] + one.config["tokens"]
    stop = Stop()

    with tqdm(desc="teaching", total=total, unit="token") as bar, stop.listening():

        def show(*given: Any) -> None:
            bar.update(one.done * one.an_update - bar.n)

        session = Session(
            torch.device("cpu"), lambda name: None, lambda tables: None, show, checkpoint, stop=stop
        )
        distill_through(one, session)
    if stop.number is not None:
        raise Interrupted(stop.number)


def _digest(path: Path) -> str:
    """SHA-256 of a model's file, or of a folder's weights."""
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            while part := opened.read(1 << 20):
                digest.update(part)
    return digest.hexdigest()
