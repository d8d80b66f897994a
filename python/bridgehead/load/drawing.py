"""Lines on axes, as SVG.

Not what they mean: names, units and colours are the page's.

Invariant: every coordinate is a finite number within the picture.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape

Point = tuple[float, float]
# Nothing at that time: the line has a gap there.
MaybePoint = tuple[float, float | None]
Show = Callable[[float], str]

_WIDTH, _HEIGHT = 800, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 70, 12, 26
_STEPS = 4
# To each side of a point that stands alone, which has no line.
_DOT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line, its name and its class of style."""

    name: str
    kind: str
    points: Sequence[MaybePoint]

    @property
    def runs(self) -> Sequence[Sequence[Point]]:
        """Its points from gap to gap."""
        found: list[list[Point]] = [[]]
        for at, value in self.points:
            if value is None:
                found.append([])
            else:
                found[-1].append((at, value))
        return [run for run in found if run]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """From a value to its place."""

    least: float
    most: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        width = self.most - self.least
        part = (value - self.least) / width if width > 0 else 0.0
        return self.begin + (self.end - self.begin) * min(1.0, max(0.0, part))


def over_time(lines: Sequence[Line], show: Show) -> str:
    """Values by the second; the vertical axis begins at nothing."""
    values = [value for line in lines for run in line.runs for _, value in run]
    if not values:
        return "<p>nothing to draw</p>"
    if len({at for line in lines for at, _ in line.points}) == 1:
        # One second alone is a level, not a line.
        lines = [
            replace(line, points=[(at, value) for at in (0.0, 1.0) for _, value in line.points])
            for line in lines
        ]
    last = max(at for line in lines for at, _ in line.points) or 1.0
    across = _Axis(least=0.0, most=last, begin=_LEFT, end=_WIDTH - _RIGHT)
    up = _upward(max(values))
    marks = [(at, f"{at:g} s") for at in _rounds(last)]
    return _picture(lines, across, up, marks, show)


def percentiles(curve: Sequence[Point], show: Show) -> str:
    """Latency by quantile, each nine as wide as the one before it."""
    if not curve:
        return "<p>nothing to draw</p>"
    furthest = max(1.0, math.ceil(max(_nines(quantile) for quantile, _ in curve if quantile < 1.0) or 1.0))
    points = [(min(_nines(quantile), furthest), latency) for quantile, latency in curve]
    across = _Axis(least=0.0, most=furthest, begin=_LEFT, end=_WIDTH - _RIGHT)
    up = _upward(max(latency for _, latency in points))
    named = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %", "99.99999 %"]
    marks = [(float(nines), name) for nines, name in enumerate(named) if nines <= furthest]
    if furthest > 0.3:
        marks.insert(1, (_nines(0.5), "50 %"))
    return _picture([Line(name="", kind="one", points=points)], across, up, marks, show)


def _nines(quantile: float) -> float:
    """0.9 is 1, 0.99 is 2, and all of them are very many."""
    return -math.log10(max(1.0 - quantile, 1e-9))


def _upward(most: float) -> _Axis:
    rounds = _rounds(most or 1.0)
    top = rounds[-1] if rounds[-1] >= (most or 1.0) else rounds[-1] + rounds[1] - rounds[0]
    return _Axis(least=0.0, most=top, begin=_HEIGHT - _BOTTOM, end=_TOP)


def _rounds(most: float) -> list[float]:
    """Some round numbers from nothing up to `most`."""
    raw = most / _STEPS
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= raw * 0.999)
    return [number * step for number in range(int(most / step + 1e-9) + 1)]


def _picture(
    lines: Sequence[Line], across: _Axis, up: _Axis, marks: Sequence[tuple[float, str]], show: Show
) -> str:
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">']
    for value in _rounds(up.most):
        y = up.place(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        named = escape(show(value)) if value else "0"
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{named}</text>')
    for at, name in marks:
        x = across.place(at)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(name)}</text>')
    for number, line in enumerate(lines):
        for run in line.runs:
            places = [(across.place(x), up.place(y)) for x, y in run]
            if len(places) == 1:
                [(x, y)] = places
                places = [(x - _DOT, y), (x + _DOT, y)]
            shown = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            parts.append(f'<polyline class="plot {line.kind}" points="{shown}"/>')
        parts.append(
            f'<text class="{line.kind}" x="{_WIDTH - _RIGHT + 8}" y="{_TOP + 12 + 16 * number}">'
            f"{escape(line.name)}</text>"
        )
    return "\n".join([*parts, "</svg>"])
