"""Draws what a request runs, as callgrind counts it: `python loadtests/flame.py > docs/flame.svg`.

The kernel is not in it. callgrind knows of each function by which callers it was reached, some levels up,
not whole stacks: what the same callers bring is shared out by its costs.

Invariant: no bar is wider than the one that it stands on.
"""

import argparse
import html
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from callgrind import named
from cases import CASES
from instructions import counted

HELLO = next(case for case in CASES if case.connections > 1)
CALLERS = 12  # whose contexts are kept apart
ROOT = "Turner::__pymethod___call__"
LEAST = 0.004  # of the whole: what is less is left out
DEEPEST = 60
WIDTH, ROW = 1200, 17
LETTER = 6.2  # how wide one is
# Frames that say nothing where they only pass something on.
PASSED_OVER = re.compile(
    r"^(_Py|Py(Object|Iter|Eval)_|pyo3::impl_|<?core::|cfunction_|type_call|0x|<?alloc::|TaskStepMeth)"
)
COLOURS = {"python": "#ffd43b", "ours": "#7fb069", "hyper": "#e07a5f", "others": "#c9ada7"}


@dataclass(slots=True)
class Function:
    """What callgrind knows of one: its own instructions, and those of each that it calls."""

    own: int = 0
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def whole(self) -> int:
        """With all that it calls."""
        return self.own + sum(self.calls.values())


def main() -> None:
    """Read, and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--counts", type=Path, help="a file of callgrind's, instead of counting")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        functions = read(options.counts or counted(HELLO, Path(folder), CALLERS))
    found = [name for name in functions if ROOT in name.partition("'")[0]]
    root = max(found, key=lambda name: functions[name].whole, default=None)
    if root is None:
        sys.exit("the counts do not name our functions: build with CARGO_PROFILE_RELEASE_STRIP=none")
    sys.stdout.write(Drawing(functions, root).svg())


def read(file: Path) -> dict[str, Function]:
    """callgrind's format: a function's lines, and after `calls=` one with what that call came to."""
    functions: dict[str, Function] = defaultdict(Function)
    names: dict[str, str] = {}
    function, called, is_call = Function(), "", False
    for line in file.read_text().splitlines():
        if line.startswith("fn="):
            function = functions[named(names, line[3:])]
        elif line.startswith("cfn="):
            called = named(names, line[4:])
        elif line.startswith("calls="):
            is_call = True
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            cost = int(line.split()[1])
            if is_call:
                function.calls[called] += cost
            else:
                function.own += cost
            is_call = False
    return functions


class Drawing:
    """Bars, from the root up."""

    def __init__(self, functions: dict[str, Function], root: str) -> None:
        self._functions = functions
        self._all = functions[root].whole
        self._bars: list[str] = []
        self._rows = 0
        self._draw(root, float(self._all), 0.0, 0, ())

    def svg(self) -> str:
        """The picture."""
        height = (self._rows + 1) * ROW + 30
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            'font-family="monospace" font-size="10">\n'
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
        )
        legend = "".join(
            f'<rect x="{10 + place * 130}" y="6" width="10" height="10" fill="{colour}"/>'
            f'<text x="{24 + place * 130}" y="15">{kind}</text>\n'
            for place, (kind, colour) in enumerate(COLOURS.items())
        )
        return f"{head}{legend}{''.join(self._bars)}</svg>\n"

    def _draw(self, name: str, cost: float, left: float, row: int, above: tuple[str, ...]) -> None:
        if cost < LEAST * self._all or row > DEEPEST or len(above) > 4 * DEEPEST:
            return
        function = self._functions[name]
        base = name.partition("'")[0]
        shown = not PASSED_OVER.match(base)
        if shown:
            self._bar(base, cost, left, row)
        share = cost / function.whole if function.whole else 0.0
        for callee, whole in sorted(function.calls.items(), key=lambda each: -each[1]):
            if callee not in above:
                part = min(whole * share, cost)
                self._draw(callee, part, left, row + shown, (*above, name))
                left += part

    def _bar(self, name: str, cost: float, left: float, row: int) -> None:
        self._rows = max(self._rows, row + 1)
        x, width = left / self._all * WIDTH, cost / self._all * WIDTH
        y = 28 + row * ROW
        words = short(name)
        letters = int(width / LETTER)
        label = html.escape(words if len(words) <= letters else words[: max(letters - 1, 0)])
        title = html.escape(f"{words}: {cost / self._all:.1%}")
        self._bars.append(
            f'<g><title>{title}</title><rect x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.2):.1f}" '
            f'height="{ROW - 1}" fill="{COLOURS[kind_of(name)]}"/>'
            + (f'<text x="{x + 2:.1f}" y="{y + 11}">{label}</text>' if letters > 3 else "")
            + "</g>\n"
        )


def kind_of(name: str) -> str:
    """Whose it is."""
    if "bridgehead" in name or "_native" in name:
        return "ours"
    if "::" not in name:
        return "python"
    return "hyper" if re.search(r"hyper|http|h1::", name) else "others"


def short(name: str) -> str:
    """Without what only a compiler needs."""
    name = re.sub(r"<(.*?) as .*?>", r"\1", name.replace("{{closure}}", ""))
    name = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", name))
    parts = [each for each in name.replace("<", "").replace(">", "").split("::") if each]
    return "::".join(parts[-2:])


if __name__ == "__main__":
    main()
