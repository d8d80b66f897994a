"""Plots of letters, for a terminal.

Not the page's: those are drawn (`page.py`).

Invariant: without UTF-8 they are plain ASCII, of the same width.
"""

import math
from collections.abc import Iterator, Sequence

from bridgehead.load import words

_BARS, _PLAIN_BARS = " ▁▂▃▄▅▆▇█", " ..::||##"
_ROWS = 10
_WIDTH = 40


def line(values: Sequence[float], *, plain: bool, width: int = 60) -> str:
    """Values over time, one column each; of a longer row the highest of some neighbours."""
    size = max(1, math.ceil(len(values) / width))
    highest = [max(values[at : at + size]) for at in range(0, len(values), size)]
    bars, top = (_PLAIN_BARS if plain else _BARS), max(highest, default=0.0)
    if not top:
        return bars[0] * len(highest)
    return "".join(bars[math.ceil(value / top * (len(bars) - 1))] for value in highest)


def distribution(curve: Sequence[tuple[float, float]], *, plain: bool) -> Iterator[str]:
    """How many answers took how long: a bar for each of some steps, which grow by a factor.

    A curve has some of the quantiles, so a bar is no exact share, and no number stands beside it.
    """
    if not curve:
        return
    least, most = curve[0][1], curve[-1][1]
    steps = [least * (most / least) ** (each / _ROWS) for each in range(1, _ROWS)] if most > least > 0 else []
    before = 0.0
    shares = []
    for step in [*steps, most]:
        below = max((quantile for quantile, latency in curve if latency <= step), default=before)
        shares.append((step, max(0.0, below - before)))
        before = max(before, below)
    top = max(share for _, share in shares)
    for step, share in shares:
        bar = ("#" if plain else "█") * round(share / top * _WIDTH) if top else ""
        yield f"{'<=' if plain else '≤'} {words.time(step):>8} {bar}".rstrip()
