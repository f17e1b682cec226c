"""Tables of stored trainings on made-up texts in which a short probe chose the learning rate."""

from __future__ import annotations

from ..core.tables import Table, table

PROBED: dict[str, Table] = {
    "curve": table(
        optional="empty where the first loss was not finite",
        rate=("number", "learning rate"),
        update=("updates", "after how many updates"),
        loss=("nats/answer", "mean over held-out texts"),
        accuracy=("share", "of the questions in held-out texts"),
    ),
    "rates": table(
        rate=("number", "learning rate"),
        updates=("updates", "made with it, the probe included"),
        chosen=("yes or no", "whether it had the least held-out loss after the probe"),
        ending=("name", "`solved`, `stopped` after its updates, or `not finite`"),
    ),
}


def probed(**asked: tuple[str, str]) -> dict[str, Table]:
    """These tables and the test's, whose first columns identify the question."""
    test = table(
        optional="empty where the first loss was not finite",
        **asked,
        questions=("number", "asked in all"),
        accuracy=("share", "answered right, by the rate chosen"),
        loss=("nats/answer", "mean over the questions"),
        state=("B", "states in float32 after the text, the first convolution's aside"),
    )
    return {**PROBED, "test": test}
