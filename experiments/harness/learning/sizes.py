"""A model's size and cost: the row that experiments on size store for each run."""

from __future__ import annotations

from lsa.cost import STATE_BYTES, update_flops
from lsa.gpt import GPT

from ..core.tables import table

MODEL = {
    "model": table(
        parameters=("number", "of the whole model, without a table of positions"),
        state=(
            "B",
            "of one layer and one sequence after a text of the context's length, in float32",
        ),
        flops=("FLOP", "of training on one token, by `lsa.cost.update_flops`"),
    )
}


def model_row(model: GPT, context: int) -> dict[str, int]:
    """A row of `MODEL`'s table."""
    return {
        "parameters": model.n_parameters,
        "state": model.blocks[0].attn.state_numbers(context) * STATE_BYTES,
        "flops": update_flops(model.config, context),
    }
