"""Guarded sentences of the chapter on many devices."""

from lsa.cost import head_exchange, key_exchange, state_exchange
from lsa.gpt import SCALES

from ..figures.lib.records import have
from ..figures.many_devices import headline_costs, scaling
from ..figures.many_devices.exchanges import (
    MANY,
    NETWORK,
    NVLINK,
    SCALE,
    arithmetic_seconds,
    linear_seconds,
    received,
    sent_seconds,
)
from ..figures.many_devices.headline_costs import MEMORY, measured, ratio
from . import every

WIDE = {"H": 12, "K": 64, "V": 64}  # heads of the chapter's layer


def halved(ranks: int) -> bool:
    """Whether a split by heads moves ranks / 2 times fewer bytes than keys and values."""
    length = 64 * ranks
    by_heads = head_exchange(ranks, length, **WIDE)
    return by_heads * ranks == 2 * key_exchange(ranks, length, **WIDE)


VERDICTS = {
    "With $K=V=64$ it equals {eq}`key-bytes` at 65 tokens a rank": lambda: every(
        key_exchange(ranks, 65 * ranks, **WIDE) == state_exchange(ranks, **WIDE)
        for ranks in (2, 4, 8)
    ),
    "These are $P/2$ times fewer bytes than {eq}`key-bytes`": lambda: every(
        halved(ranks) for ranks in (2, 3, 4, 6, 12)
    ),
    "which have two of the twelve heads": lambda: (
        SCALES[SCALE]["n_head"] == 12 and -(-12 // MANY) == 2
    ),
    "ranks the scan receives four transitions, the all-gather seven": lambda: (
        MANY == 8 and 7 * received("scan", 8, 8) == 4 * received("gather", 8, 8)
    ),
    "Up to four ranks both receive the same number of bytes": lambda: every(
        received("scan", ranks, 8) == received("gather", ranks, 8) for ranks in (2, 4)
    ),
    "over NVLink, so they can hide behind the arithmetic": lambda: (
        sent_seconds("ring", NVLINK) < arithmetic_seconds()
    ),
    "They hide there only if the arithmetic reaches less than": lambda: (
        sent_seconds("ring", NETWORK) > arithmetic_seconds() > sent_seconds("heads", NETWORK)
    ),
    "with the ring; four are slower": lambda: every(
        scaling.speedup(attention, 4, 0) < 1 < scaling.speedup(attention, 2, 0)
        for attention in ("linear", "softmax")
    ),
    "Four ranks of a ring share less": lambda: (
        scaling.speedup("linear", 4) <= 2 < scaling.speedup("softmax", 4)
    ),
    "Two processes are no faster than the package alone on one": lambda: every(
        scaling.seconds("plain", length)[1] < scaling.seconds("linear", length)[2]
        for length in scaling.lengths("linear")
    ),
    "where only the queries are computed meanwhile": lambda: (
        sent_seconds("gather", NVLINK) < sent_seconds("gather", NETWORK) < 1.1 * linear_seconds()
    ),
    "An H100 has 80 GB.": lambda: every(
        headline_costs.memory(scale, context) < MEMORY
        for scale in headline_costs.BIG
        for context in headline_costs.CONTEXTS
    ),
    "On a CPU a block was timed": lambda: every(
        run["provenance"]["device"]["kind"] == "cpu" for run in have("block_speed")
    ),
    "At 16,384 tokens the bounds understate what linear attention gains": lambda: every(
        ratio(scale, context)[1] > ratio(scale, context)[0]
        for scale, context in measured()
        if context == 16384
    ),
}
