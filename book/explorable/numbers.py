"""Rounding, printing and ticks: what the page's script must do in exactly the same way."""

import math


def round_column(values, digits):
    """Values as they are stored: whole numbers exact, the rest to `digits` significant digits.

    An evenly spaced column is left unrounded: it is stored as start and step.
    """
    if isinstance(values[0], str) or progression(values):
        return list(values)
    return [_round(value, digits) for value in values]


def _round(value, digits):
    if float(value).is_integer() and abs(value) < 2**53:
        return int(value)
    return float(f"{value:.{digits}g}")


def progression(values):
    """`{"from", "step", "count"}` if that reproduces every value exactly, else None.

    Updates are evenly spaced, and so are seconds derived from seconds per update:
    sixty-four such columns cost three numbers each.
    """
    if len(values) < 4 or isinstance(values[0], str):
        return None
    start, step = values[0], values[1] - values[0]
    exact = all(start + step * i == value for i, value in enumerate(values))
    return {"from": start, "step": step, "count": len(values)} if exact else None


def format_number(value, digits=4):
    """A number for a reader: 131072 -> "131,072", 3.2071 -> "3.207", 12345.6 -> "12,346"."""
    if value is None:
        return "–"
    size = abs(value)
    if float(value).is_integer() and size < 1e15:
        text = f"{int(size):,}"
    elif size >= 10 ** (digits - 1):
        text = f"{math.floor(size + 0.5):,}"
    elif size >= 1e-4:
        text = f"{size:#.{digits}g}".rstrip(".")
    else:
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{mantissa}×10{_raised(int(exponent))}"
    return f"−{text}" if value < 0 else text


def _raised(power):
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def quantity(value, axis):
    """A value with what it is a value of: "5.6 h", "1,234 updates", "chunked"."""
    if isinstance(value, str):
        return value
    return f"{format_number(value, axis.digits)} {axis.unit or axis.noun}"


def interpolate(xs, ys, x):
    """y at x on the line through the points, or None outside it."""
    if not xs[0] <= x <= xs[-1]:
        return None
    after = next((i for i, value in enumerate(xs) if value >= x), 0)
    if after == 0:
        return ys[0]
    share = (x - xs[after - 1]) / (xs[after] - xs[after - 1])
    return ys[after - 1] + share * (ys[after] - ys[after - 1])


def crossing_share(ys, level, falling):
    """Where a curve first reaches a level: (index, share of the way from the point before it).

    None if it never does. Linear between points.
    """
    reached = (lambda y: y <= level) if falling else (lambda y: y >= level)
    for i, y in enumerate(ys):
        if reached(y):
            return (i, 1.0) if i == 0 else (i, (level - ys[i - 1]) / (y - ys[i - 1]))
    return None


def log_ticks(low, high, base, most):
    """`[(value, text)]` for a log axis: powers of the base, thinned to at most `most`.

    Base two counts in binary thousands (4096 reads 4k), base ten in decimal ones.
    Under two decades, base ten also marks 2 and 5.
    """
    first, last = math.floor(math.log(low, base)) - 1, math.ceil(math.log(high, base)) + 1
    steps = (1, 2, 5) if base == 10 and high / low < 100 else (1,)
    values = [m * float(base) ** power for power in range(first, last + 1) for m in steps]
    values = [value for value in values if low * 0.999999 <= value <= high * 1.000001]
    every = max(1, math.ceil(len(values) / max(most, 2)))
    return [(value, tick_text(value, 1024 if base == 2 else 1000)) for value in values[::every]]


def linear_ticks(low, high, most):
    """`[(value, text)]` at round steps, about `most` of them, all with the same decimals."""
    rough = (high - low) / max(most, 2)
    size = 10.0 ** math.floor(math.log10(rough))
    times = next(times for times in (1, 2, 2.5, 5, 10) if times * size >= rough * 0.999)
    step = times * size
    places = (
        0
        if step >= 1 and step.is_integer()
        else -math.floor(math.log10(size)) + (times == 2.5) - (times == 10)
    )
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [float(f"{i * step:.12g}") for i in range(first, last + 1)]
    return [
        (value, ("−" if value < 0 else "") + f"{abs(value):,.{max(0, places)}f}")
        for value in values
    ]


def eased(value, digits, upwards):
    """A number a little easier to reach than a noisy best, and rounder."""
    if value == 0:
        return 0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    steps = math.ceil(value / step - 1e-6) if upwards else math.floor(value / step + 1e-6)
    return float(f"{steps * step:.12g}")


def tick_text(value, thousand):
    """A tick in few characters: 65536 -> "64k" where a thousand is 1024, 0.01 -> "0.01"."""
    for power, suffix in ((3, "G"), (2, "M"), (1, "k")):
        if value >= thousand**power and (thousand == 1024 or power > 1 or value >= 10000):
            return f"{_plain(value / thousand**power)}{suffix}"
    if value >= 1e-4:
        return _plain(value)
    return f"10{_raised(round(math.log10(value)))}"


def _plain(value):
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return f"{int(text):,}" if "." not in text else text
