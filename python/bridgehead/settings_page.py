"""Writes docs/settings.md: `python -m bridgehead.settings_page > docs/settings.md`.

Not a source of anything: what is said of an option is in `config.py`.

Invariant: the same options make the same bytes, so that a test can compare the page with the file.
"""

import re
import sys
from itertools import groupby

from bridgehead.command_line import WORDS
from bridgehead.config import OPTIONS
from bridgehead.options import Option, Shape
from bridgehead.sources import OUR_PREFIX

_OPENING = """\
# Settings

<!-- Generated from python/bridgehead/config.py by `python -m bridgehead.settings_page`. Do not edit. -->

A flag outranks the environment, the environment outranks the configuration file, and that outranks the
default: [configuration.md](configuration.md) has the rest of the rules. Each variable is also understood with
uvicorn's prefix, `UVICORN_` instead of `BRIDGEHEAD_`, and ours outranks it. A TIME is a number of seconds, or
has a unit: `500ms`, `30s`, `2m`, `1h`. A value that cannot be used ends the start with exit code 3.

Names and defaults are uvicorn's; where they are not, ≠ says so and the reason stands below the table. Below
each variable is the key in a TOML file.
"""


def render() -> str:
    """The whole page."""
    parts = [_OPENING]
    for group, members in groupby(OPTIONS, key=lambda option: option.group):
        parts.append(_section(group, list(members)))
    return "\n".join([*parts, _words()])


def _words() -> str:
    """What may be written beside the settings."""
    head = ("| word | what it does |", "|---|---|")
    rows = [f"| `{f'{word.flag} {word.metavar}'.strip()}` | {word.help} |" for word in WORDS]
    return "\n".join(["## Reading and showing them", "", *head, *rows, ""])


_HEAD = ("| option | default | what it does | environment, TOML |", "|---|---|---|---|")
_PAGE = re.compile(r"\bdocs/([a-z0-9-]+\.md)")


def _section(group: str, members: list[Option]) -> str:
    lines = [f"## {group}", "", *_HEAD, *map(_row, members)]
    differing = [option for option in members if option.differs]
    if differing:
        lines += ["", *(f"- ≠ `{option.name}` — {option.differs}." for option in differing)]
    return "\n".join([*lines, ""])


def _row(option: Option) -> str:
    value = f" {option.metavar}" if option.metavar and option.shape is not Shape.TARGET else ""
    mark = " ≠" if option.differs else ""
    variable = option.environment_name(OUR_PREFIX)
    # On the command line a page is named by its path; this one lies beside it.
    does = _PAGE.sub(r"[\1](\1)", option.help)
    # In one cell, since a screen is no wider.
    names = f"`{variable}`<br>`{option.toml_key}`"
    cells = [f"`{option.flags}{value}`{mark}", option.shown_default, does, names]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.stdout.write(render())
