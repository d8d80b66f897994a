"""How options become a command line's words and help, for `serve` and for `bridgehead load`.

Not the grammar of either: `command_line.py` and `load/command.py` put theirs together.

Invariant: a mistake is a `StartError` that names the next step, never argparse's own exit.
"""

import argparse
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, NoReturn

from bridgehead.errors import StartError, nearest
from bridgehead.options import Option, Shape

_NONE: Mapping[str, str] = MappingProxyType({})


class Parser(argparse.ArgumentParser):
    """argparse, with our errors."""

    def __init__(self, prog: str, **words: Any) -> None:
        super().__init__(
            prog=prog, formatter_class=_HelpFormatter, allow_abbrev=False, add_help=False, **words
        )
        self.repeated: list[str] = []  # a sentence for each option that was given again

    @property
    def flags(self) -> frozenset[str]:
        """Every word with dashes that is understood."""
        return frozenset(self._option_string_actions)

    def error(self, message: str) -> NoReturn:
        """A mistake in the words."""
        raise StartError(message.removeprefix("argument "), f"see `{self.prog} --help`")

    def add_options(self, options: Sequence[Option]) -> None:
        """Each option in its group, in the order they come."""
        for group, members in groupby(options, key=lambda option: option.group):
            section = self.add_argument_group(group)
            for option in members:
                _add(section, option)

    def refuse_unknown(
        self,
        unknown: Sequence[str],
        *,
        unexpected: str,
        others: Sequence[str] = (),
        successors: Mapping[str, str] = _NONE,
    ) -> None:
        """Words that nothing was made of; `unexpected` is the hint for one that is no option.

        `others` are taken as well, though they are no options of this parser. `successors` are hints for
        words of other programs.
        """
        if not unknown:
            return
        word = next((word for word in unknown if word.startswith("-")), unknown[0])
        if not word.startswith("-"):
            raise StartError(f"unexpected argument {word!r}", unexpected)
        flag = word.partition("=")[0]
        if flag in self._option_string_actions:
            raise StartError(f"{flag!r} stands behind `--`, where no word is an option", "write it before")
        if flag in successors:
            raise StartError(f"there is no option {flag!r}", successors[flag])
        otherwise = f"see `{self.prog} --help` for the options of this version"
        # Without dashes: two that all words begin with make strangers look alike.
        names = {known.strip("-"): known for known in (*others, *self._option_string_actions)}
        near = nearest(flag.strip("-"), names)
        hint = f"did you mean `{names[near[0]]}`?" if near else otherwise
        raise StartError(f"there is no option {flag!r}", hint)


class _LastOne(argparse.Action):
    """An option that counts once: each value is looked at, and the last one is taken."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: Any = None,
    ) -> None:
        if hasattr(namespace, self.dest):
            earlier = getattr(namespace, self.dest)
            try:
                self.const.read(earlier)
            except StartError as problem:
                raise problem.within(option_string) from None
            assert isinstance(parser, Parser)
            parser.repeated.append(
                f"{option_string} is given again: {values!r} counts, {earlier!r} does not."
            )
        setattr(namespace, self.dest, values)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=100)


def _add(section: argparse._ArgumentGroup, option: Option) -> None:
    shown = f" [{option.shown_default}]" if option.shape is not Shape.TARGET else ""
    words = (option.help + shown).replace("%", "%%")
    own: dict[Shape, dict[str, Any]] = {
        Shape.TARGET: {"nargs": "?", "metavar": option.metavar},
        Shape.VALUE: {
            "dest": option.name,
            "metavar": option.metavar,
            "action": _LastOne,
            "const": option,
        },
        Shape.LIST: {"dest": option.name, "metavar": option.metavar, "action": "append"},
        Shape.SWITCH: {"dest": option.name, "action": argparse.BooleanOptionalAction},
        Shape.FLAG: {"dest": option.name, "action": "store_true"},
    }
    name = option.name if option.shape is Shape.TARGET else option.flag
    section.add_argument(name, default=argparse.SUPPRESS, help=words, **own[option.shape])
