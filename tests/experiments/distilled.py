"""What tests of taught models share: a tiny teacher, and a session that ends when it is told to."""

from pathlib import Path

import torch

from experiments.harness.core.plan import Session
from experiments.harness.learning.corpora import load_corpus
from experiments.harness.learning.returning import Trained
from lsa.llama import Llama, LlamaConfig

CONFIG = {
    "seed": 0,
    "texts": 2,
    "length": 200,
    "feature_tokens": 800,
    "feature_rate": 1e-2,
    "mix_rate": 1e-3,
    "learning_rate": 3e-3,
    "warmup_updates": 2,
    "tokens": 1200,
    "measure_every": 800,
    "asked": [["passages", 80, 2]],
    "last": [["lists", 80, 1, 3]],
    "keeps_end": False,
    "goes_on": "",
}


def cut(text):
    return [*text.encode()]


def teacher():
    torch.manual_seed(1)
    shape = LlamaConfig(
        vocab_size=256, n_layer=2, n_head=4, n_kv_head=2, head_width=8, d_model=16, d_mlp=32
    )
    model = Llama(shape)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(5)  # scores that differ
    return Trained(model.requires_grad_(False), cut, "0" * 64)


def splits():
    return load_corpus("novels").splits


class Copier(torch.nn.Module):
    """Predicts, surely, the token that stood `back` places before the one to come."""

    def __init__(self, back):
        super().__init__()
        self.back = back

    def forward(self, tokens):
        logits = torch.zeros(*tokens.shape, 256)
        seen = tokens[:, : max(0, tokens.shape[1] - self.back + 1)]
        logits[:, self.back - 1 :].scatter_(2, seen[..., None], 20.0)
        return logits

    hidden = forward

    def head(self, x):
        return x


class Ended(Session):
    """A session that has time for so many pieces of work."""

    def __init__(self, folder, pieces=10**9, name="run"):
        nothing = lambda *given: None  # noqa: E731
        checkpoint = Path(folder) / f"{name}.pt"
        super().__init__(torch.device("cpu"), load_corpus, nothing, nothing, checkpoint)
        self.left = pieces

    def out_of_time(self):
        self.left -= 1
        return self.left < 0
