"""Curves over how much is asked for, as one SVG that shows itself in light and dark.

Not what they mean, which `overload.py` says.

Invariant: every coordinate lies within the picture, whatever was measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, GAP = 760, 240, 40
LEFT, RIGHT, TOP, BOTTOM = 60, 110, 30, 40
STEPS = 4
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #333; }
  .title { font-weight: 600; } .grid { stroke: #ddd; } .bound { stroke: #777; stroke-dasharray: 4 4; }
  .curve { fill: none; stroke-width: 2; }
  .a { stroke: #1f6feb; } .b { stroke: #b45309; stroke-dasharray: 6 3; }
  text.a { fill: #1f6feb; stroke: none; } text.b { fill: #b45309; stroke: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #ccc; } .grid { stroke: #444; } .a { stroke: #6ea8fe; } .b { stroke: #f0a850; }
    text.a { fill: #6ea8fe; } text.b { fill: #f0a850; }
  }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line and its name."""

    name: str
    points: Sequence[tuple[float, float]]


Panel = tuple[str, Sequence[Curve], float, str]


def plot(panels: Sequence[Panel]) -> str:
    """Each with its title, its curves, and a bound with its name; below each other."""
    height = len(panels) * (HEIGHT + GAP)
    drawn = [
        f'<g transform="translate(0 {number * (HEIGHT + GAP)})">{_panel(panel)}</g>'
        for number, panel in enumerate(panels)
    ]
    titles = "; ".join(title for title, *_ in panels)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{escape(titles)}, by how many times more is asked for than can be answered</title>",
            f"<style>{STYLE}</style>",
            *drawn,
            "</svg>\n",
        ]
    )


def _panel(panel: Panel) -> str:
    title, curves, bound, name = panel
    most_x = max((x for curve in curves for x, _ in curve.points), default=1.0) or 1.0
    most_y = 1.1 * max([bound, *(y for curve in curves for _, y in curve.points)]) or 1.0

    def place(x: float, y: float) -> str:
        across = LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, x / most_x))
        up = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * min(1.0, max(0.0, y / most_y))
        return f"{across:.1f},{up:.1f}"

    def level(y: float, kind: str) -> str:
        (x1, at), (x2, _) = place(0, y).split(","), place(most_x, y).split(",")
        return f'<line class="{kind}" x1="{x1}" x2="{x2}" y1="{at}" y2="{at}"/>'

    parts = [f'<text class="title" x="{LEFT}" y="16">{escape(title)}</text>']
    for step in range(STEPS + 1):
        y, x = most_y * step / STEPS, most_x * step / STEPS
        at = place(0, y).split(",")[1]
        parts += [level(y, "grid"), f'<text x="{LEFT - 8}" y="{at}" text-anchor="end">{y:.3g}</text>']
        across = place(x, 0).split(",")[0]
        parts.append(f'<text x="{across}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}×</text>')
    parts.append(level(bound, "bound"))
    at = float(place(0, bound).split(",")[1])
    parts.append(f'<text x="{LEFT + 6}" y="{at - 5:.1f}">{escape(name)}</text>')
    for curve, kind in zip(curves, "ab", strict=False):
        places = " ".join(place(*each) for each in curve.points)
        end = place(*curve.points[-1]).split(",")
        parts.append(f'<polyline class="curve {kind}" points="{places}"/>')
        parts.append(
            f'<text class="{kind}" x="{float(end[0]) + 8:.1f}" y="{end[1]}">{escape(curve.name)}</text>'
        )
    return "\n".join(parts)
