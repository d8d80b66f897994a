"""Where a report goes: options of the command that say nothing about the run.

Not what is written there: `text.py`, `page.py` and `table.py` make that.

Invariant: a file that cannot be written ends the start, not the end of a long run.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from bridgehead.errors import StartError
from bridgehead.options import Option, Shape, maybe, option, options_of, switch, text

STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Files, or `-` for stdout."""

    json: str | None = option(
        None, read=maybe(text), metavar="FILE", group="Report", help="write the report as JSON; - for stdout"
    )
    csv: str | None = option(
        None,
        read=maybe(text),
        metavar="FILE",
        group="Report",
        help="write a line for each second; - for stdout",
    )
    html: str | None = option(
        None,
        read=maybe(text),
        metavar="FILE",
        group="Report",
        help="write a page with plots, complete in itself",
    )
    progress: bool | None = option(
        None,
        read=maybe(switch),
        shape=Shape.SWITCH,
        unset="on a terminal",
        group="Report",
        help="show on stderr how far it is",
    )

    @property
    def files(self) -> tuple[str, ...]:
        """All that were named."""
        return tuple(each for each in (self.json, self.csv, self.html) if each is not None)

    def check(self) -> None:
        """Whether they can be written, before an hour is spent on what to write."""
        twice = [each for each in self.files if self.files.count(each) > 1]
        if twice:
            shown = "stdout" if twice[0] == STDOUT else twice[0]
            raise StartError(f"two reports go to {shown}", "give each its own file")
        for each in self.files:
            folder = Path(each).absolute().parent
            if each == STDOUT:
                continue
            if Path(each).is_dir() or not folder.is_dir():
                raise StartError(f"{each} cannot be written", "name a file in a folder that is there")
            if not os.access(each if Path(each).exists() else folder, os.W_OK):
                raise StartError(f"{each} cannot be written: permission denied", "name another file")


def write(place: str, text: str) -> None:
    """To a file or to stdout."""
    if place == STDOUT:
        sys.stdout.write(text)
        return
    try:
        Path(place).write_text(text, encoding="utf-8")
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise StartError(f"{place} cannot be written: {why}", "name another file") from None


OPTIONS: tuple[Option, ...] = options_of(Outputs)
