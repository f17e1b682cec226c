"""Published tables, in the numbers of their authors, for readers to sort."""

from __future__ import annotations

from lsa.cost import PEAKS
from lsa.gpt import SCALES

from ..lib.format import duration, percent
from ..lib.records import NotMeasuredError
from ..lib.tables import Table

HYPHEN = "\N{NON-BREAKING HYPHEN}"

# Gu and Dao (2023), table 1: accuracy in per cent on selective copying, 4,096 tokens.
SELECTIVE_COPYING = (
    ("S4", "no gate", "S4", "18.3"),
    ("", "no gate", "S6", "97.0"),
    ("H3", "H3", "S4", "57.0"),
    ("Hyena", "H3", "Hyena", "30.1"),
    ("", "H3", "S6", "99.7"),
    ("", "Mamba", "S4", "56.4"),
    ("", "Mamba", "Hyena", "28.4"),
    ("Mamba", "Mamba", "S6", "99.8"),
)

# Gu and Dao (2023), table 3: zero-shot evaluations of the models with the tokenizer of NeoX and the
# corpus of Mamba.
ZERO_SHOT_TITLES = [
    "model", "Pile", "LAMBADA", "LAMBADA acc.", "HellaSwag", "PIQA",
    "Arc-E", "Arc-C", "WinoGrande", "mean",
]  # fmt: skip
ZERO_SHOT = """
Pythia-160M      29.64  38.10  33.0   30.2  61.4  43.2  24.1  51.9  40.6
Mamba-130M       10.56  16.07  44.3   35.3  64.5  48.0  24.3  51.9  44.7
Pythia-410M      9.95   10.84  51.4   40.6  66.9  52.1  24.6  53.8  48.2
Mamba-370M       8.28   8.14   55.6   46.5  69.5  55.1  28.0  55.3  50.0
Pythia-1B        7.82   7.92   56.1   47.2  70.7  57.0  27.1  53.5  51.9
Mamba-790M       7.33   6.02   62.7   55.1  72.1  61.2  29.5  56.1  57.1
Pythia-1.4B      7.51   6.08   61.7   52.1  71.0  60.5  28.5  57.2  55.2
RWKV-1.5B        7.70   7.04   56.4   52.5  72.4  60.5  29.4  54.6  54.3
Mamba-1.4B       6.80   5.04   64.9   59.1  74.2  65.5  32.8  61.5  59.7
Pythia-2.8B      6.73   5.04   64.7   59.3  74.0  64.1  32.9  59.7  59.1
RWKV-3B          7.00   5.24   63.9   59.6  73.7  67.8  33.1  59.6  59.6
Mamba-2.8B       6.22   4.23   69.2   66.1  75.2  69.7  36.3  63.5  63.3
Pythia-6.9B      6.51   4.45   67.1   64.0  75.2  67.3  35.5  61.3  61.7
RWKV-7.4B        6.31   4.38   67.2   65.5  76.1  67.8  37.5  61.0  62.5
"""

# Buckman and Gelada (2024): milliseconds of a training update of a GPT-2 with 124 million
# parameters on an H100, by tokens. Flash attention is the softmax.
UPDATE_TITLES = ["softmax, ms", "chunked", "attention", "recurrent"]
UPDATE_TIMES = {
    1024: (15.5, 15.2, 17.8, 752),
    4096: (32.6, 28.3, 35.9, 2968),
    16384: (130, 81.5, 148, 11907),
    65536: (1216, 289, 1477, 48292),
    131072: (4441, 570, 5450, None),
}
BEHIND_AT = 65536  # the longest text at which recurrent mode was timed
WAITS_AT = 1024  # the shortest


def selective_copying() -> Table:
    """Accuracy by architecture and inner layer, in per cent. Gu and Dao (2023), table 1."""
    titles = ["known as", "architecture", "layer", "accuracy, %"]
    return Table(titles, [list(row) for row in SELECTIVE_COPYING], align="lllr")


def zero_shot() -> Table:
    """Perplexities and accuracies of trained models. Gu and Dao (2023), table 3."""
    rows = []
    for line in ZERO_SHOT.strip().splitlines():
        name, *cells = line.split()
        rows.append([name.replace("-", HYPHEN), *cells])
    return Table(ZERO_SHOT_TITLES, rows, align="l" + "r" * 9)


def update_times() -> Table:
    """Time of a training update by mode and length. Buckman and Gelada (2024)."""
    lines = [
        [
            f"{tokens:,}",
            *("–" if ms is None else f"{ms:,g}" for ms in times),
            f"{times[0] / times[1]:.2f}",
        ]
        for tokens, times in UPDATE_TIMES.items()
    ]
    titles = ["tokens", *UPDATE_TITLES, "softmax over chunked"]
    return Table(titles, lines, align="r" * len(titles))


def update_ratio(tokens: int) -> float:
    """Softmax's time over chunked mode's, of an update. Raises NotMeasuredError."""
    if tokens not in UPDATE_TIMES:
        raise NotMeasuredError(f"no published update of {tokens} tokens")
    softmax, chunked, *_ = UPDATE_TIMES[tokens]
    return softmax / chunked


def recurrent_waits(tokens: int = WAITS_AT) -> tuple[float, float]:
    """Seconds that a recurrent update's dependent multiply-adds take, and that it took.

    One multiply-add a token and layer forwards, and one backwards. Raises NotMeasuredError.
    """
    if (took := UPDATE_TIMES[tokens][-1]) is None:
        raise NotMeasuredError(f"no published recurrent update of {tokens} tokens")
    return 2 * tokens * SCALES["124M"]["n_layer"] * PEAKS["H100 SXM"].step, 1e-3 * took


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the three modes: published times."""
    _, _, attention, recurrent = UPDATE_TIMES[BEHIND_AT]
    waits, took = recurrent_waits()
    behind = [slow / softmax - 1 for softmax, _, slow, _ in UPDATE_TIMES.values()]
    return {
        "published_attention": f"{percent(min(behind))} to {percent(max(behind))}",
        "published_behind": f"{recurrent / attention:.0f}",
        "published_wait": duration(waits),
        "published_recurrent": duration(took),
        "published_step": duration(took / WAITS_AT / SCALES["124M"]["n_layer"]),
    }
