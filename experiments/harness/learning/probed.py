"""Tables of stored trainings on made-up texts whose learning rate a short probe chose."""

from __future__ import annotations

from ..core.tables import table

PROBED = {
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
